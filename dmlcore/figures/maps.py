"""Map of embeddings: projected points coloured by class on a square grid, and lasso selection of points."""

from __future__ import annotations

import colorsys
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dmlcore.figures.palette import LISTS
from dmlcore.typing import Floats, Ints

# The first three colours are from the Okabe-Ito palette. Each further colour has a contrast of at least 3 on both page
# backgrounds and, given that, is as far as possible from the previous colours in CIELAB, for normal vision and for each
# kind of dichromacy. All distances are at least 17 (tests/figures/test_colour_vision.py).
FEW = LISTS["map"][False]
MOST_COLOURS = 256  # colours repeat beyond this number, because more would be indistinguishable
# relative luminances that give a contrast of at least 3 on both page backgrounds, white and #12161C
LIGHTNESS = (0.28, 0.13, 0.20)
MARGIN = 0.03  # empty margin on each side, as a share of the square
STEPS = 65535  # largest coordinate on either axis of the square
# golden angle as a share of the hue circle: the hue step between consecutive classes, which keeps them distinct
_TURN = 0.381966


def palette(classes: int) -> list[str]:
    """Return one colour "#rrggbb" per class: from the list FEW if it has enough colours, otherwise generated.

    At most 256 colours are generated; with more classes they repeat.
    """
    if classes <= len(FEW):
        return list(FEW[:classes])
    return [_hue(number % MOST_COLOURS) for number in range(classes)]


def luminance(colour: str) -> float:
    """Return the relative luminance of "#rrggbb" in 0..1 (WCAG 2.2)."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@dataclass(frozen=True, eq=False)
class Sheet:
    """Projected points with integer coordinates on a square grid of 65536 x 65536, in the order of the embeddings.

    The y axis points upwards. Frames hold the same points at different times. They are scaled together, so that points
    do not jump between frames.
    """

    frames: NDArray[np.uint16]  # (S, n, 2)
    indices: Ints  # (n,) indices of the samples in the data set
    labels: Ints  # (C,) labels of the classes present, ascending
    group: Ints  # (n,) index of the point's class in `labels`
    counts: Ints  # (C,)

    @classmethod
    def of(cls, points: NDArray[np.floating[Any]], labels: Ints, indices: Ints) -> Sheet:
        """Create a sheet from projected points.

        Args:
            points: Points (n, 2), or (S, n, 2) for S frames.
            labels: Labels (n,).
            indices: Indices (n,) of the samples in the data set.

        Raises:
            ValueError: If the shapes disagree or a point is not finite.
        """
        frames = points if points.ndim == 3 else points[None]
        if frames.shape[1:] != (len(labels), 2) or indices.shape != labels.shape or 0 in frames.shape:
            raise ValueError(
                f"points {points.shape}, labels {labels.shape} and indices {indices.shape} do not fit together"
            )
        if not np.isfinite(frames).all():
            raise ValueError("points must be finite, but hold NaN or Inf")
        present, group, counts = np.unique(labels, return_inverse=True, return_counts=True)
        square = in_square(frames.reshape(-1, 2)).reshape(frames.shape)
        return cls(np.rint(square * STEPS).astype("<u2"), indices.astype(np.int64), present, group, counts)

    @cached_property
    def central(self) -> Ints:
        """Index of the point nearest to the median of each class in the last frame, shape (C,)."""
        points = self.frames[-1].astype(float)
        starts = np.cumsum(self.counts) - self.counts
        low, high = starts + (self.counts - 1) // 2, starts + self.counts // 2
        sorted_axes = [axis[np.lexsort((axis, self.group))] for axis in points.T]
        median = np.stack([(axis[low] + axis[high]) / 2 for axis in sorted_axes], axis=1)
        distance = np.linalg.norm(points - median[self.group], axis=1)
        rows: Ints = np.lexsort((distance, self.group))[starts]
        return rows

    def enclosed(self, polygon: NDArray[np.integer[Any]], frame: int = -1) -> Ints:
        """Return the indices, ascending, of the points inside a polygon (m, 2) with coordinates in 0..65535.

        The polygon is closed automatically. A point is inside if its winding number is not 0, so that a lasso that
        crosses itself loses no points. All arithmetic uses integers, as in the browser.

        Raises:
            ValueError: If the polygon has fewer than 3 corners.
        """
        corners = np.asarray(polygon, np.int64)
        if corners.ndim != 2 or corners.shape[1] != 2 or len(corners) < 3:
            raise ValueError(f"a lasso has three or more corners (m, 2), got shape {corners.shape}")
        order = np.argsort(self.frames[frame][:, 1], kind="stable")
        x, y = self.frames[frame][order].astype(np.int64).T
        winding = np.zeros(len(x), np.int64)
        for (x0, y0), (x1, y1) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
            if y0 == y1:
                continue
            # points within the height range of this polygon edge: min <= y < max
            among = slice(*np.searchsorted(y, sorted((y0, y1))))
            left = (x1 - x0) * (y[among] - y0) - (x[among] - x0) * (y1 - y0)
            winding[among] += (left > 0) if y1 > y0 else -(left < 0).astype(np.int64)
        inside: Ints = np.sort(order[winding != 0])
        return inside


def in_square(points: NDArray[np.floating[Any]], frame: NDArray[np.floating[Any]] | None = None) -> Floats:
    """Scale points (n, 2) equally on both axes and centre them in the unit square, with a margin on each side.

    Args:
        points: The points to transform.
        frame: Points (m, 2) that determine scale and shift; None uses `points`. If points lie outside their range,
            results may lie outside the square.
    """
    filling = points if frame is None else frame
    low, high = filling.min(axis=0).astype(float), filling.max(axis=0).astype(float)
    width = float((high - low).max()) or 1.0
    shares: Floats = 0.5 + (points - (low + high) / 2) / width * (1 - 2 * MARGIN)
    return shares


@cache
def _hue(number: int) -> str:
    return _colour(number * _TURN % 1.0, LIGHTNESS[number % len(LIGHTNESS)])


def _colour(hue: float, target: float) -> str:
    """Return the colour with the given hue whose relative luminance is `target`."""
    low, high = 0.0, 1.0
    for _ in range(12):
        lightness = (low + high) / 2
        red, green, blue = (round(255 * c) for c in colorsys.hls_to_rgb(hue, lightness, 0.72))
        colour = f"#{red:02X}{green:02X}{blue:02X}"
        low, high = (lightness, high) if luminance(colour) < target else (low, lightness)
    return colour
