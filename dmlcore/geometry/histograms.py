"""Approximation of average pooling by a histogram over prototypes, and its error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dmlcore.typing import Floats, Ints


@dataclass(frozen=True)
class PrototypeCombination:
    """Histogram of features over their nearest prototypes, and its error as an approximation of the average.

    The error obeys |combination - average| <= mean_distance <= radius.
    """

    assignment: Ints  # (n,) index of the nearest prototype, the lowest among ties
    histogram: Floats  # (m,) fraction of the features assigned to each prototype
    combination: Floats  # (D,) mean of the prototypes weighted by the histogram
    average: Floats  # (D,) mean of the features
    error: float  # distance between combination and average
    mean_distance: float  # mean distance between a feature and its nearest prototype
    radius: float  # largest distance between a feature and its nearest prototype


def prototype_combination(features: ArrayLike, prototypes: ArrayLike) -> PrototypeCombination:
    """Compute the histogram of features (n, D) over their nearest prototypes (m, D), its error and two error bounds.

    Raises:
        ValueError: If an argument is empty, not finite, or the dimensions D differ.

    Reference:
        Gurbuz 2022, Prop. 4.2.1, corrected: the left-hand side is not squared, and the points need not lie in the unit
        ball.
    """
    x, v = np.asarray(features, dtype=np.float64), np.asarray(prototypes, dtype=np.float64)
    for name, points in (("features", x), ("prototypes", v)):
        if points.ndim != 2 or not points.size or not np.isfinite(points).all():
            raise ValueError(f"{name} must be finite points of shape (N, D), N > 0, got shape {points.shape}")
    if x.shape[1] != v.shape[1]:
        raise ValueError(f"prototypes must have {x.shape[1]} columns like features, got {v.shape[1]}")
    distances = np.linalg.norm(x[:, None] - v[None], axis=-1)
    assignment = distances.argmin(1)
    histogram = np.bincount(assignment, minlength=len(v)) / len(x)
    combination, average = histogram @ v, x.mean(0)
    nearest = distances.min(1)
    return PrototypeCombination(
        assignment,
        histogram,
        combination,
        average,
        float(np.linalg.norm(combination - average)),
        float(nearest.mean()),
        float(nearest.max()),
    )
