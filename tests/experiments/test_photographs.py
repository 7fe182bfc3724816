"""Embedding sets of photographs: labels, unreadable files, zips, the background and cancellation."""

import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dmlcore.data import DataError
from dmlcore.experiments import embedding_sets, imports, photographs
from dmlcore.experiments.imports import Import
from dmlcore.experiments.photographs import EmbedRequest
from dmlcore.models import pooled_features
from dmlcore.storage.runs import RunStore
from dmlcore.storage.task import BUSY
from tests.started import until

pytestmark = pytest.mark.processes


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked_tasks: None) -> None:
    monkeypatch.setenv("DML_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twelve photographs in two class folders."""
    made = tmp_path / "birds"
    for row in range(12):
        path = made / "ab"[row % 2] / f"{row:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(row).integers(0, 256, (6, 6, 3), np.uint8)
        Image.fromarray(pixels).resize((60, 40)).save(path)
    return made


def quiet(message: str, done: float = 0, total: float | None = None, **more: str) -> None:
    """Ignore the progress."""


def leftovers() -> list[Path]:
    return [*imports._scratch().iterdir()]


def test_class_folders_give_a_labelled_set(store: RunStore, folder: Path) -> None:
    seen: list[tuple[str, float, float | None]] = []
    run = imports.embed(
        store,
        EmbedRequest(photographs=str(folder)),
        lambda message, done=0, total=None, **_: seen.append((message, done, total)),
    )
    made = embedding_sets.of_run(run)
    assert made.vectors.shape == (12, 1280)
    assert made.class_names == ("a", "b")
    assert [*made.images] == sorted(folder.glob("*/*"))
    assert made.ids == [path.relative_to(folder).as_posix() for path in made.images]
    assert made.notes[0].startswith("embedded with efficientnet_lite0, weights efficientnet-lite0-")
    assert run.spec.name == "birds efficientnet_lite0"
    assert run.scores()["inputs"]["map_at_r"] > 0
    assert (photographs.ACTIVITY, 12, 12) in seen
    assert leftovers() == []


def test_unreadable_photographs_are_left_out_and_named(store: RunStore, folder: Path) -> None:
    (folder / "a" / "02.png").write_bytes(b"damaged")
    (folder / "b" / "03.png").write_bytes((folder / "b" / "05.png").read_bytes()[:60])
    notes: dict[str, str] = {}
    run = imports.embed(store, EmbedRequest(photographs=str(folder)), lambda *_, **more: notes.update(more))
    made = embedding_sets.of_run(run)
    assert len(made.vectors) == len(made.images) == 10
    assert not {"02.png", "03.png"} & {path.name for path in made.images}
    (note,) = made.notes[1:]
    assert note.startswith("2 of 12 photographs were left out, because they cannot be read: image a/02.png ")
    assert "03.png" in note
    assert notes == {"note": note}
    for path in folder.glob("*/*"):
        path.write_bytes(b"")
    with pytest.raises(DataError, match=r"none of the 12 photographs can be read; the first: .*00.png"):
        imports.embed(store, EmbedRequest(photographs=str(folder)), quiet)
    assert len(store.list()) == 1
    assert leftovers() == []


def test_photographs_of_a_zip_are_copied(store: RunStore, folder: Path, tmp_path: Path) -> None:
    packed = shutil.make_archive(str(tmp_path / "packed"), "zip", folder)
    run = imports.embed(store, EmbedRequest(photographs=packed, name="Mine"), quiet)
    made = embedding_sets.of_run(run)
    assert run.spec.name == "Mine"
    assert made.class_names == ("a", "b")
    assert all(path.is_file() and path.is_relative_to(run.path) for path in made.images)


def test_a_table_gives_labels_and_split(store: RunStore, folder: Path, tmp_path: Path) -> None:
    lines = [
        f"{path},{path.stem[1]},{('train', 'test')[row % 2]}\n" for row, path in enumerate(sorted(folder.glob("*/*")))
    ]
    (tmp_path / "t.csv").write_text("image,label,split\n" + "".join(lines[:8]))
    request = EmbedRequest(photographs=str(folder), labels=str(tmp_path / "t.csv"), image_roots=(str(tmp_path),))
    made = embedding_sets.of_run(imports.embed(store, request, quiet))
    assert (len(made.vectors), made.split) == (8, "samples")
    assert made.images[0] == folder / "a" / "00.png"
    with pytest.raises(DataError, match="leads outside the folder of the images"):
        imports.embed(store, request.model_copy(update={"image_roots": ()}), quiet)


def test_unknown_networks_are_refused(store: RunStore, folder: Path) -> None:
    with pytest.raises(DataError, match="vgg: no ImageNet weights are known"):
        imports.embed(store, EmbedRequest(photographs=str(folder), network="vgg"), quiet)


def test_it_runs_in_the_background_and_a_cancel_stores_nothing(store: RunStore, folder: Path, monkeypatch) -> None:
    task = imports.new_import()
    (folder / "a" / "02.png").write_bytes(b"damaged")
    task.begin(EmbedRequest(photographs=str(folder)), store)
    until(lambda: task.state() and task.state().state not in BUSY and not task.is_alive(), task.log_tail)
    state = task.state()
    assert state.state == "done", state.message
    assert len(embedding_sets.of_run(store.open(state.run)).vectors) == 11
    assert state.note.startswith("1 of 12 photographs was left out")

    monkeypatch.setattr(pooled_features, "BATCH", 1)
    task = imports.new_import()
    (task.path / imports.REQUEST).write_text(EmbedRequest(photographs=str(folder)).model_dump_json())
    embed_batch = pooled_features.PooledFeatures._embed

    def cancelled(self, decoded):
        task.request_cancel()
        time.sleep(0.3)
        return embed_batch(self, decoded)

    monkeypatch.setattr(pooled_features.PooledFeatures, "_embed", cancelled)
    with pytest.raises(KeyboardInterrupt):
        Import(task.path).work(store)
    assert task.status() == "cancelled"
    assert len(store.list()) == 1
    assert [path for path in leftovers() if path.name.startswith("unpacked-")] == []
