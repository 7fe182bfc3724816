"""TensorBoard event files of a run, derived from its metrics.jsonl, so that they can be recreated at any time.

Equal rows give equal bytes. Rows contain no clock time: for a finished run, wall times are interpolated as if all steps
took equally long; for an unfinished run, all of them are its creation time.
"""

from __future__ import annotations

import io
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from dmlcore.storage import atomic_files
from dmlcore.storage.metrics_rows import Row
from dmlcore.storage.runs import Run

FOLDER = "events"  # default folder of the event files, in the run directory
HISTOGRAMS = ("positive", "negative")
# tag prefixes for kinds of rows of which one step can have several
AS_TAGS = {"scores": lambda row: f"scores/{row.get('of', 'test')}"}


def write(run: Run, into: Path | None = None) -> Path:
    """Write or update the event file of a run and return its folder, `into`/RUN or RUN/events.

    If the run has only gained rows, they are appended, so that an open TensorBoard continues reading. Otherwise the
    file is replaced atomically. Raises RunError for an unreadable run.
    """
    folder = (into / run.id) if into else run.path / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"events.out.tfevents.{int(run.state().created):010d}.{run.id}"
    text = b"".join(_framed(event) for event in _events(run))
    before = path.read_bytes() if path.is_file() else b""
    if before and text.startswith(before):
        with open(path, "ab") as file:
            file.write(text[len(before) :])
    else:
        atomic_files.replace(path, lambda file: file.write(text))
    return folder


def follow(
    runs: Sequence[Run], into: Path | None = None, *, every: float = 3.0, stop: Callable[[], bool] = lambda: False
) -> list[Path]:
    """Call `write` every `every` seconds until all runs have ended or `stop` returns True; return the folders."""
    while True:
        going = any(run.is_alive() for run in runs)  # checked before writing, so that the last rows are not missed
        folders = [write(run, into) for run in runs]
        if stop() or not going:
            return folders
        time.sleep(every)


def _events(run: Run) -> Iterator[bytes]:
    from tensorboardX import summary  # imported late: training does not need it
    from tensorboardX.proto.event_pb2 import Event

    state = run.state()
    pace = state.seconds / max(state.step, 1) if state.state == "done" else 0.0

    def event(step: int, **content: Any) -> bytes:
        made: bytes = Event(wall_time=state.created + step * pace, step=step, **content).SerializeToString()
        return made

    yield event(0, file_version="brain.Event:2")
    # indented, so that TensorBoard displays it as a Markdown code block
    spec = "\n".join(f"    {line}" for line in run.spec.to_toml().splitlines())
    yield event(0, summary=summary.text("spec", spec))
    for row in run.metrics()[0]:
        step = row.get("step")
        if not isinstance(step, int):
            continue
        kind = str(row.get("kind", "row"))
        prefix = AS_TAGS[kind](row) if kind in AS_TAGS else kind
        for tag, value in _numbers(row, prefix):
            yield event(step, summary=summary.scalar(tag, value))
        for name, top, counts in _histograms(row):
            yield event(step, summary=summary.histogram_raw(f"{prefix}/{name}", *_buckets(top, counts)))


def _numbers(row: Row, prefix: str) -> Iterator[tuple[str, float]]:
    """Yield the tag and value of every number in a row; {"recall_at": {"1": 0.5}} has the tag PREFIX/recall_at/1."""
    for key, value in row.items():
        if key in ("kind", "of", "step", "histogram_to"):
            continue
        if isinstance(value, dict):
            yield from _numbers(value, f"{prefix}/{key}")
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield f"{prefix}/{key}", float(value)


def _histograms(row: Row) -> Iterator[tuple[str, float, list[int]]]:
    top = row.get("histogram_to")
    for name in HISTOGRAMS:
        counts = row.get(f"{name}_histogram")
        if isinstance(top, (int, float)) and isinstance(counts, list) and sum(counts) > 0:
            yield f"{name}_histogram", float(top), counts


def _buckets(top: float, counts: Sequence[int]) -> tuple[float, float, int, float, float, list[float], list[int]]:
    """Return a histogram as arguments of `summary.histogram_raw`, as if each value were at the centre of its bin.

    The items are minimum, maximum, count, sum, sum of squares, upper limits of the bins, and counts.
    """
    edges = [top * i / len(counts) for i in range(len(counts) + 1)]
    middles = [(low + high) / 2 for low, high in pairwise(edges)]
    filled = [i for i, count in enumerate(counts) if count]
    total = sum(count * middle for count, middle in zip(counts, middles, strict=True))
    squares = sum(count * middle**2 for count, middle in zip(counts, middles, strict=True))
    return edges[filled[0]], edges[filled[-1] + 1], sum(counts), total, squares, edges[1:], list(counts)


def _framed(event: bytes) -> bytes:
    """Return an event as a TFRecord: the length and its checksum, then the event and its checksum."""
    from tensorboardX.record_writer import masked_crc32c

    out = io.BytesIO()
    length = struct.pack("<Q", len(event))
    for part in (length, event):
        out.write(part + struct.pack("<I", masked_crc32c(part)))
    return out.getvalue()
