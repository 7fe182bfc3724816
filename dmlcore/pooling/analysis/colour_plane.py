"""Map from points in the plane to mixtures of red, green and blue, the features of the toy data in `red_blue`.

With this map, a demonstration that expects colour mixtures can use two-dimensional features of real images. The
mixtures form an equilateral triangle. The plane is rotated and scaled into the triangle, so that distances between
mixtures are proportional to distances between points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dmlcore.pooling.analysis.red_blue import STEPS
from dmlcore.typing import Floats, Ints

# Outward normals of the triangle's sides opposite the green, red and blue corner.
_NORMALS = np.array([[0.0, -1.0], [np.sqrt(3) / 2, 0.5], [-np.sqrt(3) / 2, 0.5]])


@dataclass(frozen=True, eq=False)
class ColourPlane:
    """Equilateral colour triangle in the plane, with one corner each for pure green, red and blue.

    `about` chooses the triangle for a set of points.
    """

    axes: Floats  # (2, 2) horizontal and vertical unit vectors of the plane in which the colour triangle is drawn
    reach: Floats  # (3,) distances from the origin to the sides opposite the green, red and blue corner

    @classmethod
    def about(cls, points: ArrayLike, informative: ArrayLike) -> ColourPlane:
        """Return the smallest triangle around points (n, 2) in which green decreases towards `informative` (2,).

        The share of green is one half on the line midway between the mean of the points and `informative`. Points
        beyond that line are mixtures that `red_blue.informative` selects.

        Raises:
            ValueError: If an argument is invalid; the message names it.
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
        # Move sides outwards until green is one half on the required line: moving the bottom side lowers the line,
        # moving the other two raises it.
        above = float(reach[0] - ((x.mean(0) + place) / 2) @ axes.T @ _NORMALS[0])
        missing = float(reach.sum()) - 2 * above
        reach += (missing, 0, 0) if missing > 0 else (0, -missing / 2, -missing / 2)
        return cls(axes, reach)

    def mixtures(self, points: ArrayLike) -> Ints:
        """Return the mixtures of points (..., 2) as red and blue, shape (..., 2), in units of 1 / STEPS.

        The share of green is the remainder to 1. Shares are clipped to 0..1.
        """
        x = np.asarray(points, dtype=np.float64)
        whole = self.reach.sum()
        shares = (
            np.full((*x.shape[:-1], 3), 1 / 3) if whole <= 0 else (self.reach - x @ self.axes.T @ _NORMALS.T) / whole
        )
        red, blue = (np.rint(STEPS * shares[..., k].clip(0, 1)).astype(np.int64) for k in (1, 2))
        return np.stack([red, np.minimum(blue, STEPS - red)], -1)


def characteristic_prototypes(histograms: ArrayLike, labels: ArrayLike, label: int, most: int) -> Ints:
    """Return up to `most` prototypes that a class uses more than the average class, largest surplus first.

    At least one prototype is returned. Ties go to the lower index.

    Args:
        histograms: Weight of each of m prototypes in each of N images, shape (N, m).
        labels: Class of each image, shape (N,).
        label: The class.
        most: Maximum number of prototypes.

    Returns:
        Indices of the prototypes, shape (k,) with 1 <= k <= `most`.

    Raises:
        ValueError: If no image has the label.
    """
    h, y = np.asarray(histograms, dtype=np.float64), np.asarray(labels)
    if not (y == label).any():
        raise ValueError(f"label: no image has {label!r}")
    means = np.stack([h[y == each].mean(0) for each in np.unique(y)])
    surplus = h[y == label].mean(0) - means.mean(0)
    order = np.argsort(-surplus, kind="stable")[:most]
    used: Ints = order[surplus[order] > 0]
    return used if len(used) else order[:1]
