"""Small embedding sets for tests of pages: three groups of vectors with metadata."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from dmlcore.data.embedding_sets import files
from dmlcore.data.embedding_sets.roles import Roles
from dmlcore.experiments import embedding_sets
from dmlcore.inspection.maps import maps
from dmlcore.storage.runs import Run, RunStore

COUNT = 90
HOSTILE = '<img src=x onerror="alert(1)">'  # name of a column


def vectors(seed: int = 0, dimensions: int = 8) -> np.ndarray:
    """Return COUNT vectors; row i belongs to group i % 3."""
    rng = np.random.default_rng(seed)
    groups = 2 * np.random.default_rng(7).standard_normal((3, dimensions))
    return (groups[np.arange(COUNT) % 3] + rng.standard_normal((COUNT, dimensions))).astype(np.float32)


def columns() -> dict[str, Any]:
    """Return labels, ids, file names and metadata; every tenth value of `price` and `colour` is missing."""
    rows = range(COUNT)
    return {
        "label": [("ash", "birch", "cedar")[row % 3] for row in rows],
        "id": [f"item {row:03}" for row in rows],
        "image": [f"{row}.png" for row in rows],
        "price": [None if row % 10 == 0 else row / 2 for row in rows],
        "colour": [None if row % 10 == 0 else ("red", "blue")[row % 2] for row in rows],
        HOSTILE: [row % 4 for row in rows],
    }


def make_set(
    root: Path,
    *,
    labels: bool = True,
    ids: bool = True,
    images: Path | None = None,
    split: bool = False,
    seed: int = 0,
    name: str = "Trees",
    project: bool = True,
    order: np.ndarray | None = None,
) -> Run:
    """Import an embedding set and compute a map of it.

    Args:
        root: Folder of the run store.
        labels: False for a set without labels.
        ids: False for a set without ids.
        images: Empty folder that receives the images; None for a set without images.
        split: Add a column that divides the samples of each class into train and test.
        seed: Seed of the vectors.
        name: Name of the set.
        project: Compute a map.
        order: Row numbers in the order in which they are stored; None for ascending order.
    """
    given = columns()
    for column, wanted in (("label", labels), ("id", ids), ("image", images is not None)):
        if not wanted:
            del given[column]
    if split:
        given["split"] = [("train", "test")[row // 3 % 2] for row in range(COUNT)]
    if images is not None:
        draw_images(images)
    order = np.arange(COUNT) if order is None else order
    given = {column: [values[row] for row in order] for column, values in given.items()}
    table = files.from_arrays(vectors(seed)[order], given, source="trees.npy")
    run = embedding_sets.create(RunStore(root), table, Roles.guess(table.columns), name=name, images=images)
    if project:
        maps.make(run, maps.Settings("pca"))
    return run


def draw_images(folder: Path) -> None:
    """Write one small image per sample."""
    for row in range(COUNT):
        Image.new("RGB", (12, 12), (2 * row, 80, 200 - 2 * row)).save(folder / f"{row}.png")
