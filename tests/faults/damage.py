"""Damaged and forged run directories, and all readers of the pages, for tests/pages/test_damage.py."""

from __future__ import annotations

import json
import os
import random
import zipfile
from collections.abc import Callable
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np

from dmlcore.data import DataError
from dmlcore.figures.curves import linked
from dmlcore.inspection import confusions, hubness, neighbours, selections, snapshots
from dmlcore.inspection.maps import maps
from dmlcore.inspection.maps.settings import Settings
from dmlcore.monitoring import comparability, health, tensorboard
from dmlcore.storage import atomic_files, checkpoint, fork_parent, metrics_rows, run_directory
from dmlcore.storage.arrays import Unreadable
from dmlcore.storage.checkpoint import CheckpointError
from dmlcore.storage.runs import Run, RunError, RunStore
from pages.inspection.explore import colourings
from pages.inspection.explore import service as map_service
from pages.inspection.neighbours import service as gallery_service
from pages.shared.server import thumbnails
from pages.shared.state import run_reader, time_left
from pages.shared.widgets import results
from pages.shared.words import numbers, titles
from pages.training.runs import monitors as monitors_view

PAGES = (
    "runs", "neighbours", "explore", "confusions", "differences", "failures", "fork", "studies",
    "published_results", "collage", "settings",
)  # fmt: skip
KNOWN = (RunError, Unreadable, CheckpointError, DataError)  # errors that the pages show as sentences


# ---- readers of the pages
def look(store: RunStore, run_id: str, other: str, damaged: str = "") -> None:
    """Read everything that the pages read from a run; raises errors that they would not translate into a sentence.

    Args:
        damaged: Name of the damaged file; only its readers are called, in addition to the list of runs.
    """
    assert other in [run.id for run in store.list()], "the other run is not listed"
    store.unreadable()
    try:
        run = store.open(run_id)
        _ = run.state(), run.spec
    except RunError:
        return
    for ask, reads in ASKED.items():
        if damaged and not any(fnmatch(damaged, pattern) for pattern in ("spec.json", *reads)):
            continue
        try:
            ask(run, store.open(other))
        except KNOWN:
            continue


def _table(run: Run, other: Run) -> None:
    state = run.state()
    titles.label(run), run.status(), run.log_tail(30), numbers.duration(state.seconds), json.dumps(state.model_dump())
    for score in run.scores().values():
        results.score_columns(score)


def _curves(run: Run, other: Run) -> None:
    history = run_reader.Reader().history(run)
    time_left.time_left(run.state(), history.pace)
    panels = [results._panel(name, [("a", [history])]) for name in results.PANELS]
    linked([panel for panel in panels if panel.curves], steps=run.state().steps)
    for histogram in history.histograms:
        monitors_view._bars(histogram, monitors_view._window(run))
        monitors_view._words(histogram)


def _rows(run: Run, other: Run) -> None:
    health.watch(run.metrics()[0], run.spec)
    comparability.lint([run, other])
    list(tensorboard._events(run))


def _embeddings(run: Run, other: Run) -> None:
    for path in (run.embeddings(), *(snapshot.embeddings for snapshot in snapshots.snapshots(run))):
        if path is None:
            continue
        found = neighbours.read(path)
        confusions.of_neighbours(found.labels, found.neighbours, ~found.is_gallery, 1)
        hubness.hubness(found.labels, found.neighbours, found.is_gallery, 1)
        colourings.columns(found)
        data = thumbnails.dataset(run.spec)
        if int(found.indices.max()) < len(data.labels):
            thumbnails.thumbnail(run.spec, int(found.indices[0]))


def _maps(run: Run, other: Run) -> None:
    for settings in maps.list_settings(run):
        if data := map_service.of_map(run, settings):
            map_service.names(run, data.sheet)
            assert data.sheet.central.max() < len(data.sheet.indices)
    map_service.of_map(run, Settings(method="pca"), training=True)
    for path in (run.path / "selections").glob("*.json"):
        selections.load(run, path.stem)


def _weights(run: Run, other: Run) -> None:
    if found := gallery_service.maps_of(run):
        gallery_service.image(run, next(iter(found.row)), found.tag)


def _checkpoints(run: Run, other: Run) -> None:
    fork_parent.steps(run.path)
    checkpoint.load(run.path)
    for path in run_directory.kept_checkpoints(run.path).values():
        checkpoint.read(path)


# Readers of each file; the spec is read by all.
ASKED: dict[Callable[[Run, Run], None], tuple[str, ...]] = {
    _table: ("state.json", "metrics.jsonl", "log.txt", "*.json"),
    _curves: ("state.json", "metrics.jsonl"),
    _rows: ("state.json", "metrics.jsonl"),
    _embeddings: ("embeddings/*", "kept/*.npz"),
    _maps: ("embeddings/*", "trajectories/*", "selections/*", "kept/*.ckpt"),
    _weights: ("weights/*", "embeddings/*"),
    _checkpoints: ("*.ckpt",),
}


# ---- damage
def files_of(run: Run) -> list[Path]:
    """Return every non-empty file of a run directory."""
    found = atomic_files.newest_first(run.path.rglob("*"))
    return sorted(path for path in found if os.path.getsize(path))


class Damage:
    """Invert one bit and restore it at the end."""

    def __init__(self, path: Path, place: int, bit: int) -> None:
        self.path, self.place, self.bit = path, place, bit
        self.whole = path.read_bytes()

    def __enter__(self) -> Damage:
        spoilt = bytearray(self.whole)
        spoilt[self.place] ^= 1 << self.bit
        self._put(bytes(spoilt))
        return self

    def __exit__(self, *_: object) -> None:
        self._put(self.whole)

    def _put(self, content: bytes) -> None:
        beside = self.path.with_name(".damage")
        beside.write_bytes(content)
        os.replace(beside, self.path)  # as after a copy or a backup: another inode and modification time

    def __str__(self) -> str:
        return f"{self.path.name}: bit {self.bit} of byte {self.place} of {len(self.whole)}"


def drawn(run: Run, source: random.Random) -> Damage:
    """Draw a flip of any bit of any file, except files that are being written."""
    path = source.choice([path for path in files_of(run) if not path.name.startswith(".")])
    return Damage(path, source.randrange(path.stat().st_size), source.randrange(8))


def _matching(folder: Path, pattern: str) -> list[Path]:
    found = sorted(path for path in folder.glob(pattern) if not path.name.startswith("."))
    if pattern == "embeddings/*.npz":
        found = [path for path in found if "." not in path.stem]
    return found


def _forge(path: Path, change: Callable[[Path], object]) -> None:
    if path.is_symlink() or not path.is_file():
        return
    with suppress(TypeError, ValueError, OSError, zipfile.BadZipFile):  # already forged in another way
        change(path)


def _json(**changes: Any) -> Callable[[Path], object]:
    return lambda path: path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def _npz(**changes: Callable[[Any], Any]) -> Callable[[Path], object]:
    def change(path: Path) -> None:
        with np.load(path, allow_pickle=False) as file:
            content = dict(file)
        np.savez(path, **{name: changes.get(name, lambda value: value)(value) for name, value in content.items()})

    return change


def _append(*lines: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(path.read_bytes() + b"".join(line + b"\n" for line in lines))


def _become(make_it: Callable[[Path], object]) -> Callable[[Path], object]:
    def change(path: Path) -> None:
        path.unlink()
        make_it(path)

    return change


def _rows_of(*found: dict[str, Any]) -> Callable[[Path], object]:
    return _append(*(metrics_rows.to_line(row)[:-1] for row in found))


def _claim(path: Path) -> None:
    """Return embeddings whose header claims 23 TiB."""
    with np.load(path) as file:
        content = dict(file)
    shape = (len(content["labels"]), 10**10 * content.pop("embeddings").shape[1])
    np.savez(path, **content)
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(118) + b"\n"
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("embeddings.npy", b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + b"0" * 64)


SPEC, STATE, METRICS, TABLE = "spec.json", "state.json", "metrics.jsonl", "embeddings/*.npz"
MAP, STEPS, KEPT, PLANES = "embeddings/*.map.npz", "trajectories/*.npz", "kept/*.npz", "selections/*.json"
FORGED: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a spec of brackets": (SPEC, lambda path: path.write_text('{"name":' + "[" * 200_000)),
    "a spec of another loss": (SPEC, _json(loss={"name": "invented", "parameters": {"q": 1.0}})),
    "a loss with strange parameters": (SPEC, _json(loss={"name": "ranking", "parameters": {"m": "abc", "q": 3.0}})),
    "a spec of other data": (SPEC, _json(data={"name": "invented"})),
    "a spec of data elsewhere": (SPEC, _json(data={"name": "folder", "root": "/nowhere"})),
    "a spec of another pooling": (SPEC, _json(pooling={"name": "invented"}, miner={"name": "invented"})),
    "a spec of another network": (SPEC, _json(model={"name": "invented", "start": "x" * 4000})),
    "a fork of nobody": (SPEC, _json(fork={"run": "nobody", "step": 10**9})),
    "a name of a megabyte": (SPEC, _json(name="x" * 2**20)),
    "a spec that is a list": (SPEC, lambda path: path.write_text("[]")),
    "a spec of ten megabytes": (SPEC, lambda path: path.write_text(" " * 10**7)),
    "an unknown protocol": (SPEC, _json(protocol="invented", ks=[1, 99_999])),
    "created in 1e20": (STATE, _json(created=1e20)),
    "created never": (STATE, lambda path: path.write_text('{"state": "done", "created": NaN}')),
    "seconds NaN": (STATE, lambda path: path.write_text('{"state": "done", "seconds": NaN}')),
    "steps below zero": (STATE, _json(step=-5, steps=-1)),
    "more steps than planned": (STATE, _json(step=10**12, steps=0)),
    "running since ever": (STATE, _json(state="running", pid=1, started=1, message="x" * 10**6)),
    "queued in the future": (STATE, _json(state="queued", queued=8e9)),
    "a message in HTML": (STATE, _json(message="<img src=x onerror=alert(1)> $x$ \u202e", device="x" * 10**5)),
    "a state of brackets": (STATE, lambda path: path.write_text('{"message":' + "[" * 10**6)),
    "an empty state": (STATE, lambda path: path.write_bytes(b"")),
    "rows without step": (METRICS, _append(b'{"kind":"step","step":41}', b'{"kind":"step","loss":1}', b"{}", b"[]")),
    "rows of noise": (METRICS, _append(os.urandom(4096), b"\xff", b'{"kind":"step","step":1e999,"loss":NaN}')),
    "rows of brackets": (METRICS, _append(b"[" * 100_000, b'{"kind":' * 100_000)),
    "numbers of 5,000 digits": (METRICS, _append(b'{"kind":"step","step":' + b"9" * 5000 + b',"loss":1}')),
    "huge losses": (METRICS, _rows_of(*({"kind": "step", "step": s, "loss": 9e99} for s in range(9, 99)))),
    "steps without end": (METRICS, _rows_of({"kind": "step", "step": 10**12, "loss": -9e99})),
    "scores of a later release": (
        METRICS,
        _rows_of({"kind": "scores", "step": 9, "of": "later", "map_at_r": 0.5, "recall_at": {}, "queries": 0, "x": []}),
    ),
    "scores without ranks": (
        METRICS,
        _rows_of(
            *({"kind": "scores", "step": 9, "of": of, "map_at_r": None, "recall_at": {}, "queries": 10**12}
              for of in ("inputs", "untrained", "trained"))
        ),
    ),
    "histograms of one bar": (
        METRICS,
        _rows_of({"kind": "measure", "step": 9, "histogram_to": 9e99, "positive_histogram": [0],
                  "negative_histogram": [10**12]}),
    ),
    "a terabyte of rows": (METRICS, lambda path: os.truncate(path, 2**40)),
    "rows in a pipe": (METRICS, _become(os.mkfifo)),
    "rows in a folder": (METRICS, _become(os.mkdir)),
    "a spec in a pipe": (SPEC, _become(os.mkfifo)),
    "a state in a loop": (STATE, _become(lambda path: path.symlink_to(path.name))),
    "a lock that is a folder": ("lock", _become(os.mkdir)),
    "a lock that is a loop": ("lock", _become(lambda path: path.symlink_to("lock"))),
    "a log without end": ("log.txt", _become(lambda path: path.symlink_to("/dev/zero"))),
    "fewer labels": (TABLE, _npz(labels=lambda x: x[:-3])),
    "23 TiB": (TABLE, _claim),
    "samples beyond the data": (TABLE, _npz(indices=lambda x: x + 10**9)),
    "samples below zero": (TABLE, _npz(indices=lambda x: x - 10**6)),
    "one sample many times": (TABLE, _npz(indices=lambda x: x * 0)),
    "classes beyond the data": (TABLE, _npz(labels=lambda x: x + 10**6)),
    "one class": (TABLE, _npz(labels=lambda x: x * 0)),
    "every sample a class": (TABLE, _npz(labels=lambda x: np.arange(len(x)))),
    "NaN embeddings": (TABLE, _npz(embeddings=lambda x: x * np.nan)),
    "embeddings of 1e17": (TABLE, _npz(embeddings=lambda x: x * np.float32(1e17))),
    "embeddings at one point": (TABLE, _npz(embeddings=lambda x: x * 0)),
    "embeddings of no dimension": (TABLE, _npz(embeddings=lambda x: x[:, :0])),
    "embeddings of doubles": (TABLE, _npz(embeddings=lambda x: x.astype(">f8"))),
    "texts for classes": (TABLE, _npz(labels=lambda x: x.astype(str))),
    "no embeddings at all": (
        TABLE,
        _npz(**{name: (lambda x: x[:0]) for name in ("embeddings", "labels", "indices")}),
    ),
    "one embedding": (TABLE, _npz(**{name: (lambda x: x[:1]) for name in ("embeddings", "labels", "indices")})),
    "two embeddings": (TABLE, _npz(**{name: (lambda x: x[:2]) for name in ("embeddings", "labels", "indices")})),
    "an empty table": (TABLE, lambda path: path.write_bytes(b"")),
    "a table in a folder": (TABLE, _become(os.mkdir)),
    "a map of fewer points": (MAP, _npz(points=lambda x: x[:-3])),
    "a map at one point": (MAP, _npz(points=lambda x: x * 0)),
    "a map without settings": (MAP, _npz(facts=lambda x: np.array("{}"))),
    "a map of brackets": (MAP, _npz(facts=lambda x: np.array("[" * 100_000))),
    "a map of strange quality": (
        MAP,
        _npz(facts=lambda x: np.array(json.dumps(json.loads(str(x)) | {"quality": {"trustworthiness": "x"}}))),
    ),
    "steps of another map": (STEPS, _npz(steps=lambda x: x[:-1])),
    "frames without end": (STEPS, _npz(points=lambda x: x * np.inf)),
    "snapshots of fewer classes": (KEPT, _npz(labels=lambda x: x[:-1])),
    "snapshots of other samples": (KEPT, _npz(indices=lambda x: x[::-1])),
    "checkpoints of noise": ("*.ckpt", lambda path: path.write_bytes(b"0" * 64 + b"\n" + b"\xff" * 8 + b"{")),
    "kept checkpoints of noise": ("kept/*.ckpt", lambda path: path.write_bytes(b"\xff" * 100)),
    "a selection of everything": (PLANES, lambda path: path.write_text('{"origin": "x", "indices": [1e999, -1]}')),
    "a selection of brackets": (PLANES, lambda path: path.write_text("[" * 10**6)),
    "neighbours of noise": ("embeddings/*.neighbours.npz", lambda path: path.write_bytes(os.urandom(1000))),
    "neighbours beyond": ("embeddings/*.neighbours.npz", _npz(neighbours=lambda x: x + 10**6)),
}  # fmt: skip
