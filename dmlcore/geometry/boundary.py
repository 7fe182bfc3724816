"""Contour lines of an energy sampled on a grid: equipotential lines and the boundary of the active region."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import cast

import contourpy
import numpy as np

from dmlcore.typing import Floats

Lines = list[Floats]


class Levels:
    """Contour lines of an energy `raw` (H, W) sampled at the grid points with coordinates x (W,) and y (H,).

    `raw` may be infinite at singular points. It is compressed with asinh, which keeps the linear interpolation accurate
    near such points.
    """

    def __init__(self, x: Floats, y: Floats, raw: Floats) -> None:
        self.lowest, self.highest = float(raw.min()), float(raw.max())
        across, up = np.broadcast_to(x, raw.shape), np.broadcast_to(y[:, None], raw.shape)
        # Construct the class directly, because contour_generator() spends more time on argument checks than on
        # contouring a 41 x 41 grid.
        self._edges = (x[0], x[-1]), (y[0], y[-1])
        self._contours = contourpy.SerialContourGenerator(
            across,
            up,
            _compress(raw),
            np.asarray(np.ma.nomask),
            corner_mask=False,
            line_type=contourpy.LineType.Separate,
            fill_type=contourpy.FillType.OuterOffset,
            quad_as_tri=False,
            z_interp=contourpy.ZInterp.Linear,
        )

    def lines(self, level: float) -> Lines:
        """Return the polylines, each of shape (K, 2), along which `raw` equals `level`; [] if there are none."""
        if not self.lowest <= level <= self.highest:
            return []
        return cast(Lines, self._contours.lines(float(_compress(level))))

    def patches(self, low: float, high: float, frame: tuple[float, float, float, float]) -> Lines:
        """Return closed polygons, each of shape (K, 2), that bound the region low < raw < high.

        Each hole is a separate polygon, so the polygons must be filled with the even-odd rule. Vertices on the edge of
        the grid are moved outward to the rectangle `frame` = (left, right, bottom, top).
        """
        above = float(_compress(math.inf)) + 1 if high == math.inf else float(_compress(high))
        points, offsets = cast(tuple[Lines, Lines], self._contours.filled(float(_compress(low)), above))
        rings = []
        for polygon, ends in zip(points, offsets, strict=True):
            for axis, (edges, moved) in enumerate(zip(self._edges, (frame[:2], frame[2:]), strict=True)):
                for edge, to in zip(edges, moved, strict=True):
                    polygon[polygon[:, axis] == edge, axis] = to
            rings += [polygon[i:j] for i, j in pairwise(ends)]
        return rings


def _compress(raw: Floats | float) -> Floats:
    return np.arcsinh(np.minimum(np.maximum(raw, -1e9), 1e9) / 0.1)


def level_lines(x: Floats, y: Floats, raw: Floats, level: float) -> Lines:
    """Return the contour lines of `raw` (H, W) at one level; a shortcut for `Levels(x, y, raw).lines(level)`."""
    return Levels(x, y, raw).lines(level)
