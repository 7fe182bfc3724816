"""Points of a plane as mixtures of red, green and blue, so that a gate of `red_blue` can be tried on real features.

The mixtures lie in a triangle whose sides all have one length. Turned and scaled, a plane fits into it; the distances
between mixtures are those between points up to one factor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dmlcore.pooling.analysis.red_blue import STEPS
from dmlcore.typing import Floats, Ints

# From the middle of the triangle to its sides: away from green, red and blue, the corners that these sides lack.
_NORMALS = np.array([[0.0, -1.0], [np.sqrt(3) / 2, 0.5], [-np.sqrt(3) / 2, 0.5]])


@dataclass(frozen=True, eq=False)
class ColourPlane:
    """The smallest equilateral triangle about some points, of which one corner, green, points in a given direction."""

    axes: Floats  # (2, 2): right and up of the triangle
    reach: Floats  # (3,) how far its sides lie from the origin: opposite green, red, blue

    @classmethod
    def about(cls, points: ArrayLike, green: ArrayLike) -> ColourPlane:
        """The triangle about points (n, 2); green (2,): towards it, as seen from their mean, lies the green corner.

        Raises ValueError naming the argument.
        """
        x, top = np.asarray(points, dtype=np.float64), np.asarray(green, dtype=np.float64)
        if x.ndim != 2 or x.shape[1] != 2 or not len(x) or not np.isfinite(x).all():
            raise ValueError(f"points must be finite, of shape (n, 2), got shape {x.shape}")
        if top.shape != (2,) or not np.isfinite(top).all():
            raise ValueError(f"green must be a finite point of shape (2,), got shape {top.shape}")
        up = top - x.mean(0)
        length = float(np.linalg.norm(up))
        up = up / length if length else np.array([0.0, 1.0])
        axes = np.stack([[up[1], -up[0]], up])
        return cls(axes, (x @ axes.T @ _NORMALS.T).max(0))

    def mixtures(self, points: ArrayLike) -> Ints:
        """Red and blue (..., 2) in steps of 1 / STEPS of points (..., 2) in it; the rest of a whole is green."""
        x = np.asarray(points, dtype=np.float64)
        whole = self.reach.sum()
        shares = (
            np.full((*x.shape[:-1], 3), 1 / 3) if whole <= 0 else (self.reach - x @ self.axes.T @ _NORMALS.T) / whole
        )
        red, blue = (np.rint(STEPS * shares[..., k].clip(0, 1)).astype(np.int64) for k in (1, 2))
        return np.stack([red, np.minimum(blue, STEPS - red)], -1)


def telling(histograms: ArrayLike, labels: ArrayLike, label: int, most: int) -> Ints:
    """Up to `most` prototypes that a class uses more than the mean of all classes, the greatest surplus first.

    histograms (N, m): the weight of N images on m prototypes; labels (N,). Of equal ones the first; at least one.
    Raises ValueError if no image has the label.
    """
    h, y = np.asarray(histograms, dtype=np.float64), np.asarray(labels)
    if not (y == label).any():
        raise ValueError(f"label: no image has {label!r}")
    means = np.stack([h[y == each].mean(0) for each in np.unique(y)])
    surplus = h[y == label].mean(0) - means.mean(0)
    order = np.argsort(-surplus, kind="stable")[:most]
    used: Ints = order[surplus[order] > 0]
    return used if len(used) else order[:1]
