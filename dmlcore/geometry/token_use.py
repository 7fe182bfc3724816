"""Overlap of classes in the tokens that they use, measured by active tokens, convex hulls and pooling weights.

Import this module directly, not through the package: it loads scipy, which training runs do not need.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dmlcore.geometry.hulls import active, area, histogram_intersections, hull, intersection
from dmlcore.typing import Bools, Floats


@dataclass(frozen=True, eq=False)
class TokenUse:
    """Use of T tokens in the plane by C classes, given by the mean pooling weight of each token in each class."""

    weights: Floats  # (C, T), rows sum to 1
    active: Bools  # (C, T) weight > tau
    # convex hull of the active tokens of each class: vertices (k, 2), counterclockwise; k < 3 if collinear
    hulls: tuple[Floats, ...]

    @classmethod
    def of(cls, tokens: ArrayLike, weights: ArrayLike, tau: float | None = None) -> TokenUse:
        """Create a `TokenUse` from the active tokens of each class and their convex hulls.

        Args:
            tokens: Positions of the tokens, shape (T, 2).
            weights: Mean pooling weight of each token in each class, shape (C, T).
            tau: Weight above which a token is active; 1 / (10 T) if None.

        Raises:
            ValueError: If an argument is invalid.

        Reference:
            Gurbuz 2022, ch. 4, with tokens in place of prototypes.
        """
        x, w = np.asarray(tokens, dtype=np.float64), np.asarray(weights, dtype=np.float64)
        if x.ndim != 2 or x.shape[1] != 2 or not np.isfinite(x).all():
            raise ValueError(f"tokens must be finite points of shape (T, 2), got shape {x.shape}")
        if w.ndim != 2 or w.shape[1] != len(x) or not np.isfinite(w).all():
            raise ValueError(f"weights must be finite numbers of shape (C, {len(x)}), got shape {w.shape}")
        flags = active(w, tau)
        return cls(w, flags, tuple(hull(x[used]) for used in flags))

    def weight_on(self, tokens: ArrayLike) -> Floats:
        """Return the fraction (C,) of each class's pooling weight that falls on the tokens with the given indices."""
        weight: Floats = self.weights[:, np.asarray(tokens, dtype=np.int64)].sum(1)
        return weight

    def intersections(self) -> Floats:
        """Return the overlap (C, C) of the pooling weights of each pair of classes, from 0 if disjoint to 1 if equal.

        The overlap is the sum over tokens of the smaller of the two weights.
        """
        return histogram_intersections(self.weights)

    def ious(self) -> Floats:
        """Return the intersections over union (C, C) of the hulls of all pairs of classes; 0 if a hull has no area."""
        areas = [area(corners) for corners in self.hulls]
        boxes = [(c.min(0), c.max(0)) if len(c) else (np.full(2, np.inf), np.full(2, -np.inf)) for c in self.hulls]
        overlaps = np.diag((np.array(areas) > 0).astype(np.float64))
        for a, b in itertools.combinations(range(len(self.hulls)), 2):
            apart = (boxes[a][0] > boxes[b][1]).any() or (boxes[b][0] > boxes[a][1]).any()
            if areas[a] and areas[b] and not apart:
                shared = max(0.0, area(intersection(self.hulls[a], self.hulls[b])))
                overlaps[a, b] = overlaps[b, a] = shared / (areas[a] + areas[b] - shared)
        return overlaps


def mean_over_pairs(table: ArrayLike) -> float:
    """Return the mean of the off-diagonal entries of a table (C, C) over pairs of classes; 0 for a single class."""
    x = np.asarray(table, dtype=np.float64)
    count = len(x)
    return float((x.sum() - np.trace(x)) / (count * (count - 1))) if count > 1 else 0.0
