"""Maps of very many points: a sample balanced over the classes is mapped, every other point placed among it.

t-SNE and UMAP of a million points are hours; what is placed lies where its neighbours of the sample lie.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dmlcore import projection
from dmlcore.inspection.maps.quality import Quality, quality
from dmlcore.typing import Ints, Singles

MOST_MAPPED = 100_000  # points that are mapped all together
SAMPLE = 20_000
NEIGHBOURS = 15  # of the sample, whose weighted mean a point is placed at
PART = 2**15  # points that are placed together
AMONG = 20_000  # points among which the quality is measured


def balanced(labels: Ints, count: int, seed: int = 0) -> Ints:
    """Rows (count,), ascending, drawn by the seed: as many of each class (n,) as there are, up to the same number."""
    random = np.random.default_rng(seed).permutation(len(labels))
    by_class = random[np.argsort(labels[random], kind="stable")]
    _, starts, sizes = np.unique(labels[by_class], return_index=True, return_counts=True)
    turn = np.arange(len(labels)) - np.repeat(starts, sizes)  # of each class the first, then the second, ...
    last = np.random.default_rng([seed, 1]).random(len(labels))
    return np.sort(by_class[np.lexsort((last, turn))[:count]])


def spread(
    embeddings: Singles,
    sample: Ints,
    plane: Singles,
    *,
    linear: bool,
    tell: Callable[[float], object] = lambda done: None,
) -> Singles:
    """Places (n, 2) of all embeddings (n, D), from the map (m, 2) of the sample (m,), which keeps its own.

    linear: by the axes of its PCA; else at the mean of the nearest of the sample (`projection.place_umap`). The
    embeddings may be memory-mapped: they are read part by part.
    """
    known = embeddings[sample]
    points = np.empty((len(embeddings), 2), np.float32)
    for start in range(0, len(embeddings), PART):
        points[start : start + PART] = among(known, plane, embeddings[start : start + PART], linear=linear)
        tell(min(1.0, (start + PART) / len(embeddings)))
    points[sample] = plane
    return points


def among(known: Singles, plane: Singles, new: Singles, *, linear: bool) -> Singles:
    """Places (k, 2) of new embeddings (k, D) among known ones (m, D) with their map (m, 2)."""
    if linear:
        return projection.place_pca(known, new)
    return projection.place_umap(known, plane, new, neighbours=NEIGHBOURS)


def quality_of_many(embeddings: Singles, plane: Singles, sample: Ints, seed: int = 0) -> Quality | None:
    """Quality of a map of very many among AMONG of the points that were placed, drawn by the seed."""
    placed = np.setdiff1d(np.arange(len(embeddings)), sample, assume_unique=True)
    rows = np.sort(np.random.default_rng([seed, 2]).choice(placed, min(AMONG, len(placed)), replace=False))
    measured = quality(embeddings[rows], plane[rows])
    return measured and replace(measured, points=len(embeddings), among=len(rows))
