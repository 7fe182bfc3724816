"""Maps of very many points: a class-balanced sample is mapped, and every other point is placed among it.

t-SNE or UMAP of a million points would take hours. Each other point is placed at the weighted mean of its neighbours in
the sample, or, for PCA, projected on the axes of the sample.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dmlcore import projection
from dmlcore.inspection.maps.quality import Quality, quality
from dmlcore.typing import Ints, Singles

MOST_MAPPED = 100_000  # largest number of points that are mapped together
SAMPLE = 20_000
NEIGHBOURS = 15  # number of neighbours in the sample whose weighted mean is the position of a point
PART = 2**15  # number of points placed per block
AMONG = 20_000  # largest number of points on which the quality of a map is measured


def draw_balanced(labels: Ints, count: int, seed: int = 0) -> Ints:
    """Draw rows balanced over the classes: the same number from each class, or all rows of a smaller class.

    Args:
        labels: Class labels (n,).
        count: Number of rows to draw, at most n.
        seed: Seed of the draw.

    Returns:
        Rows (count,), ascending.
    """
    random = np.random.default_rng(seed).permutation(len(labels))
    by_class = random[np.argsort(labels[random], kind="stable")]
    _, starts, sizes = np.unique(labels[by_class], return_index=True, return_counts=True)
    # turn 0 has one row of each class, turn 1 a second one, ...
    turn = np.arange(len(labels)) - np.repeat(starts, sizes)
    last = np.random.default_rng([seed, 1]).random(len(labels))
    return np.sort(by_class[np.lexsort((last, turn))[:count]])


def place_all(
    embeddings: Singles,
    sample: Ints,
    plane: Singles,
    *,
    linear: bool,
    tell: Callable[[float], object] = lambda done: None,
) -> Singles:
    """Compute positions for all embeddings from the map of a sample; sampled points keep their positions.

    Args:
        embeddings: Array (n, D), may be memory-mapped; it is read block by block.
        sample: Rows (m,) of the sample.
        plane: Map (m, 2) of the sample.
        linear: If True, project on the principal axes of the sample; otherwise take the weighted mean of the nearest
            points of the sample (`projection.place_umap`).
        tell: Callback that receives the fraction done in 0..1.

    Returns:
        Positions (n, 2) float32.
    """
    known = embeddings[sample]
    points = np.empty((len(embeddings), 2), np.float32)
    for start in range(0, len(embeddings), PART):
        points[start : start + PART] = place_among(known, plane, embeddings[start : start + PART], linear=linear)
        tell(min(1.0, (start + PART) / len(embeddings)))
    points[sample] = plane
    return points


def place_among(known: Singles, plane: Singles, new: Singles, *, linear: bool) -> Singles:
    """Return positions (k, 2) of new embeddings (k, D), given known embeddings (m, D) and their map (m, 2)."""
    if linear:
        return projection.place_pca(known, new)
    return projection.place_umap(known, plane, new, neighbours=NEIGHBOURS)


def quality_of_many(embeddings: Singles, plane: Singles, sample: Ints, seed: int = 0) -> Quality | None:
    """Return the quality of a large map, measured on up to AMONG points outside `sample`; None below 3 points."""
    placed = np.setdiff1d(np.arange(len(embeddings)), sample, assume_unique=True)
    rows = np.sort(np.random.default_rng([seed, 2]).choice(placed, min(AMONG, len(placed)), replace=False))
    measured = quality(embeddings[rows], plane[rows])
    return measured and replace(measured, points=len(embeddings), among=len(rows))
