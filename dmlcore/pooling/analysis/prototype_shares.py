"""Local features of images as histograms over prototypes, and the information that average or weighted pooling retains.

The package does not import this module because it loads scipy, which training does not need.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from dmlcore.geometry import k_center
from dmlcore.typing import Bools, Floats, Ints

ROUNDING = 1e-12  # tolerance for rounding errors in sums of numbers up to 1


@dataclass(frozen=True, eq=False)
class PrototypeReading:
    """Representation of N images, each with n local features, as histograms over m prototypes.

    Lengths are in units of the largest feature norm.
    """

    scale: float  # largest norm of a given feature, by which all features are divided
    features: Floats  # (N, n, D)
    weights: Floats  # (N, n) weight of each local feature in its image, sum 1
    prototypes: Floats  # (m, D)
    patches: Ints  # (m, 2) image index and position of the local feature that is nearest to each prototype
    assignment: Ints  # (N, n) nearest prototype
    histograms: Floats  # (N, m) total weight of the features assigned to each prototype
    pooled: Floats  # (N, D) weighted sum of the features; global average pooling if the weights are equal
    combination: Floats  # (N, D) histograms @ prototypes
    error: Floats  # (N,) distance between `pooled` and `combination`
    mean_distance: Floats  # (N,) weighted mean distance of features to their nearest prototype
    radius: Floats  # (N,) largest distance of a feature with positive weight to its nearest prototype

    @property
    def holds(self) -> Bools:
        """Boolean mask (N,) of images with error <= mean distance <= radius."""
        first: Bools = self.error <= self.mean_distance + ROUNDING
        return first & (self.mean_distance <= self.radius + ROUNDING)


def read(
    features: ArrayLike,
    prototypes: int | ArrayLike,
    weights: ArrayLike | None = None,
) -> PrototypeReading:
    """Describe local features (N, n, D) by prototypes, either given or selected from the features by greedy k-centre.

    Features, and prototypes if given, are divided by the largest norm of a feature.

    Args:
        features: Shape (N, n, D).
        prototypes: Prototypes (m, D), or the number of prototypes to select.
        weights: Shape (N, n), >= 0 with a positive sum per image; equal by default. The bound error <= mean distance <=
            radius holds for any weights.

    Raises:
        ValueError: If an argument is invalid; the message names it.

    Reference:
        Gurbuz 2022, Sec. 4.2, with the corrected bound: the left-hand side is not squared.
    """
    x = np.asarray(features, dtype=np.float64)
    if x.ndim != 3 or not x.size or not np.isfinite(x).all():
        raise ValueError(f"features must be finite numbers of shape (N, n, D), none of them 0, got {x.shape}")
    # normalise weights to sum 1 and scale features into the unit ball
    images, count, dimension = x.shape
    w = np.full((images, count), 1 / count) if weights is None else np.asarray(weights, dtype=np.float64)
    if w.shape != (images, count) or not (np.isfinite(w).all() and (w >= 0).all() and (w.sum(1) > 0).all()):
        raise ValueError(f"weights must be at least 0 with a positive sum per image, (N, n) = {images, count}")
    w = w / w.sum(1, keepdims=True)
    scale = float(np.linalg.norm(x, axis=-1).max()) or 1.0
    x = x / scale
    flat = x.reshape(-1, dimension)
    # select prototypes from the scaled features, or scale the given ones
    if isinstance(prototypes, (int, np.integer)):
        v = flat[k_center(flat, None, int(prototypes))]
    else:
        v = np.asarray(prototypes, dtype=np.float64) / scale
        if v.ndim != 2 or v.shape[1] != dimension or not v.size or not np.isfinite(v).all():
            raise ValueError(f"prototypes must be finite numbers of shape (m, {dimension}), got {v.shape}")

    nearest, distances, closest = _assign(flat, v)
    assignment, distances = nearest.reshape(images, count), distances.reshape(images, count)
    # One weighted bincount for all images: bin i m + k holds the weight of prototype k in image i.
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
