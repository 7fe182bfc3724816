"""Local features of images as histograms over prototypes, and what average or weighted pooling keeps of them.

The package does not import this module because it loads scipy, which training does not need.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from dmlcore.geometry import k_center
from dmlcore.typing import Bools, Floats, Ints

ROUNDING = 1e-12  # rounding of sums of numbers up to 1, so that equality satisfies the bound


@dataclass(frozen=True, eq=False)
class PrototypeReading:
    """N images of n local features each, described by m prototypes; lengths are in units of the longest feature."""

    scale: float  # the given features divided by this have norms up to 1
    features: Floats  # (N, n, D)
    weights: Floats  # (N, n) weight of each local feature in its image, sum 1
    prototypes: Floats  # (m, D)
    patches: Ints  # (m, 2): image and position of the local feature nearest to each prototype
    assignment: Ints  # (N, n) nearest prototype
    histograms: Floats  # (N, m) weight of the features at each prototype
    pooled: Floats  # (N, D) weighted sum of the features; global average pooling if the weights are equal
    combination: Floats  # (N, D) sum of histogram times prototypes
    error: Floats  # (N,) distance between `pooled` and `combination`
    mean_distance: Floats  # (N,) weighted mean of the distances of features to their prototypes
    radius: Floats  # (N,) largest such distance over features of positive weight

    @property
    def holds(self) -> Bools:
        """Mask (N,) of images with error <= mean distance <= radius."""
        first: Bools = self.error <= self.mean_distance + ROUNDING
        return first & (self.mean_distance <= self.radius + ROUNDING)


def read(
    features: ArrayLike,
    prototypes: int | ArrayLike,
    weights: ArrayLike | None = None,
) -> PrototypeReading:
    """Describe local features (N, n, D) by prototypes, given or selected among the features by greedy k-centre.

    Features, and prototypes if given, are divided by the largest norm of a feature.

    Args:
        features: Shape (N, n, D).
        prototypes: Prototypes (m, D), or the number of prototypes to select.
        weights: Shape (N, n), >= 0 with a positive sum per image; equal by default. The bound holds for any weights.

    Raises:
        ValueError: If an argument does not fit; the message names it.

    Reference:
        Gurbuz 2022, Sec. 4.2, with the true bound: no square on the left.
    """
    x = np.asarray(features, dtype=np.float64)
    if x.ndim != 3 or not x.size or not np.isfinite(x).all():
        raise ValueError(f"features must be finite numbers of shape (N, n, D), none of them 0, got {x.shape}")
    # Weights that sum to 1, and features within the unit ball.
    images, count, dimension = x.shape
    w = np.full((images, count), 1 / count) if weights is None else np.asarray(weights, dtype=np.float64)
    if w.shape != (images, count) or not (np.isfinite(w).all() and (w >= 0).all() and (w.sum(1) > 0).all()):
        raise ValueError(f"weights must be at least 0 with a positive sum per image, (N, n) = {images, count}")
    w = w / w.sum(1, keepdims=True)
    scale = float(np.linalg.norm(x, axis=-1).max()) or 1.0
    x = x / scale
    flat = x.reshape(-1, dimension)
    # Prototypes in the same units.
    if isinstance(prototypes, (int, np.integer)):
        v = flat[k_center(flat, None, int(prototypes))]
    else:
        v = np.asarray(prototypes, dtype=np.float64) / scale
        if v.ndim != 2 or v.shape[1] != dimension or not v.size or not np.isfinite(v).all():
            raise ValueError(f"prototypes must be finite numbers of shape (m, {dimension}), got {v.shape}")

    nearest, distances, closest = _assign(flat, v)
    assignment, distances = nearest.reshape(images, count), distances.reshape(images, count)
    # One weighted count for all images: cell i m + k holds the weight of prototype k in image i.
    cells = np.arange(images)[:, None] * len(v) + assignment
    histograms: Floats = np.bincount(cells.ravel(), w.ravel(), images * len(v)).astype(np.float64)
    histograms = histograms.reshape(images, len(v))
    pooled, combination = (w[..., None] * x).sum(1), histograms @ v
    return PrototypeReading(
        scale=scale,
        features=x,
        weights=w,
        prototypes=v,
        patches=np.stack(np.divmod(closest, count), axis=1),
        assignment=assignment,
        histograms=histograms,
        pooled=pooled,
        combination=combination,
        error=np.linalg.norm(combination - pooled, axis=1),
        mean_distance=(w * distances).sum(1),
        radius=np.where(w > 0, distances, 0.0).max(1),
    )


def _assign(points: Floats, prototypes: Floats) -> tuple[Ints, Floats, Ints]:
    """Return the nearest prototype of each point, its distance, and the nearest point of each prototype."""
    nearest, least = np.empty(len(points), dtype=np.int64), np.empty(len(points))
    closest, shortest = np.zeros(len(prototypes), dtype=np.int64), np.full(len(prototypes), np.inf)
    rows = max(1, (1 << 22) // prototypes.size)  # 32 MiB per part
    for start in range(0, len(points), rows):
        d = cdist(points[start : start + rows], prototypes)
        nearest[start : start + rows], least[start : start + rows] = d.argmin(1), d.min(1)
        closer = d.min(0) < shortest
        closest[closer], shortest[closer] = start + d.argmin(0)[closer], d.min(0)[closer]
    return nearest, least, closest
