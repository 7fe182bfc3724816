"""Frames of a run: positions on a map and neighbours of a few queries, one small file for each validation.

RUN/validations/STEP.npz contains the arrays of a `Frame`. All frames of a run have the same samples. The points of each
frame are rotated or mirrored to match those of the previous one.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from dmlcore.storage import arrays, atomic_files
from dmlcore.storage.arrays import FLOATS, INTEGERS, MAX_CLASSES, ArraySpec, Unreadable
from dmlcore.typing import Floats, Ints, Singles

FOLDER = "validations"
MAX_POINTS, QUERIES, NEIGHBOURS = 500, 6, 5  # largest numbers of samples, queries, and neighbours of a query
SCHEMA: arrays.Schema = {
    "points": ArraySpec(FLOATS, ("n", 2)),
    "reach": ArraySpec(FLOATS, ()),
    "indices": ArraySpec(INTEGERS, ("n",)),
    "labels": ArraySpec(INTEGERS, ("n",), below=MAX_CLASSES),
    "queries": ArraySpec(INTEGERS, ("q",), below=MAX_POINTS),
    "neighbours": ArraySpec(INTEGERS, ("q", "k")),
    "neighbour_labels": ArraySpec(INTEGERS, ("q", "k"), below=MAX_CLASSES),
}


@dataclass(frozen=True, eq=False)
class Frame:
    """Validation samples as embedded at one step.

    Attributes:
        points: Positions on the map, (n, 2) float32 with mean 0 and n <= MAX_POINTS, in the units of the embeddings.
        reach: Largest absolute coordinate of the points in this frame and all previous ones, ().
        indices: Indices of the samples in the data set, (n,).
        labels: Labels of the samples, (n,).
        queries: Positions of the queries in `indices`, (q,) with q <= QUERIES.
        neighbours: Indices in the data set of the nearest samples to each query, (q, k) with k <= NEIGHBOURS.
        neighbour_labels: Labels of the neighbours, (q, k).
    """

    points: Singles
    reach: Floats
    indices: Ints
    labels: Ints
    queries: Ints
    neighbours: Ints
    neighbour_labels: Ints


def paths(run: Path) -> dict[int, Path]:
    """Return the files of all frames in a run directory by step, in ascending order."""
    by_step = {int(path.stem): path for path in (run / FOLDER).glob("*.npz") if path.stem.isdecimal()}
    return dict(sorted(by_step.items()))


def write(run: Path, step: int, frame: Frame) -> None:
    """Write the frame of a step, replacing an earlier one of this step."""
    (run / FOLDER).mkdir(exist_ok=True)
    path = run / FOLDER / f"{step:08}.npz"
    atomic_files.replace(path, lambda file: arrays.save(file, **asdict(frame)))


def read(path: Path) -> Frame:
    """Read a frame.

    Raises:
        Unreadable: The file is damaged.
    """
    remedy = "Choose another validation"
    table = arrays.read(path, SCHEMA, remedy=remedy)
    frame = Frame(**table)
    sizes, most = (len(frame.indices), *frame.neighbours.shape), (MAX_POINTS, QUERIES, NEIGHBOURS)
    if any(size > limit for size, limit in zip(sizes, most, strict=True)):
        raise Unreadable(
            f"The file {path.name} has {sizes} samples, queries and neighbours; at most {most} are allowed. {remedy}."
        )
    if frame.queries.max(initial=-1) >= len(frame.indices):
        last = frame.queries.max()
        raise Unreadable(f"The file {path.name} has query {last} of {len(frame.indices)} samples. {remedy}.")
    return frame


def remove_after(run: Path, step: int) -> None:
    """Remove the frames of all steps after `step`, which a run resumed from this step writes again."""
    for recorded, path in paths(run).items():
        if recorded > step:
            path.unlink(missing_ok=True)
