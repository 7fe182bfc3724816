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
    """The smallest equilateral triangle about some points in which green is what lies away from a chosen place."""

    axes: Floats  # (2, 2): right and up of the triangle
    reach: Floats  # (3,) how far its sides lie from the origin: opposite green, red, blue

    @classmethod
    def about(cls, points: ArrayLike, informative: ArrayLike) -> ColourPlane:
        """The triangle about points (n, 2), whose green falls towards a place (2,) and is half on the way to it.

        The way begins at the mean of the points. What is nearer to that place, along it, is `red_blue.informative`.
        Raises ValueError naming the argument.
        """
        x, place = np.asarray(points, dtype=np.float64), np.asarray(informative, dtype=np.float64)
        if x.ndim != 2 or x.shape[1] != 2 or not len(x) or not np.isfinite(x).all():
            raise ValueError(f"points must be finite, of shape (n, 2), got shape {x.shape}")
        if place.shape != (2,) or not np.isfinite(place).all():
            raise ValueError(f"informative must be a finite point of shape (2,), got shape {place.shape}")
        up = x.mean(0) - place
        length = float(np.linalg.norm(up))
        up = up / length if length else np.array([0.0, 1.0])
        axes = np.stack([[up[1], -up[0]], up])
        reach = (x @ axes.T @ _NORMALS.T).max(0)
        # Moving a side outwards moves the line of half green: the bottom one lowers it, the other two raise it.
        above = float(reach[0] - ((x.mean(0) + place) / 2) @ axes.T @ _NORMALS[0])
        missing = float(reach.sum()) - 2 * above
        reach += (missing, 0, 0) if missing > 0 else (0, -missing / 2, -missing / 2)
        return cls(axes, reach)

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
