"""Lines in the plane from values on a grid: equipotentials and active region of an energy, streamlines of a force."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import cast

import numpy as np

from dmlcore.typing import Floats

Lines = list[Floats]


class Levels:
    """Contour lines of an energy `raw` (H, W) sampled at the grid points with coordinates x (W,) and y (H,).

    `raw` may be infinite at singular points. It is compressed with asinh, which keeps the linear interpolation accurate
    near such points.
    """

    def __init__(self, x: Floats, y: Floats, raw: Floats) -> None:
        import contourpy  # imported late, because training imports this package too

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
        if not self.lowest <= level <= self.highest or math.isinf(level):
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


def streamlets(force: Floats, *, seeds: int = 18, reach: float = 1.3, steps: int = 8) -> Floats:
    """Compute streamlines through the points of a lattice, by midpoint steps along the direction of the force.

    A streamline stops where the force vanishes or the grid ends. Streamlines of length 0 are left out.

    Args:
        force: Forces on the nodes of a regular grid, shape (H, W, 2).
        seeds: Lattice points per axis.
        reach: Length of a streamline on each side of its lattice point, in lattice cells.
        steps: Integration steps on each side of the lattice point.

    Returns:
        Streamlines in the direction of the force, shape (S, 2 * steps + 1, 2). Coordinates are fractions of the grid,
        from 0 to 1.
    """
    height, width = force.shape[:2]
    length = np.linalg.norm(force, axis=-1, keepdims=True)
    unit = np.divide(force, length, out=np.zeros_like(force), where=length > 0)
    row, column = np.indices((seeds, seeds))
    place = np.stack(((column + 0.5 + 0.25 * (-1.0) ** row) / seeds, (row + 0.5) / seeds), axis=-1).reshape(-1, 2)
    step = reach / seeds / steps

    def along(at: Floats) -> Floats:
        u, v = at[:, 0] * width - 0.5, at[:, 1] * height - 0.5
        i, j = np.clip(u, 0, width - 1.001).astype(int), np.clip(v, 0, height - 1.001).astype(int)
        f, g = (np.clip(u - i, 0, 1))[:, None], (np.clip(v - j, 0, 1))[:, None]
        low = unit[j, i] * (1 - f) + unit[j, i + 1] * f
        high = unit[j + 1, i] * (1 - f) + unit[j + 1, i + 1] * f
        inside = ((at >= 0) & (at <= 1)).all(1, keepdims=True)
        return np.asarray(np.where(inside, low * (1 - g) + high * g, 0.0))

    def walk(sign: float) -> list[Floats]:
        line, at = [], place
        for _ in range(steps):
            at = at + sign * step * along(at + sign * step / 2 * along(at))
            line.append(at)
        return line

    lines = np.stack([*walk(-1.0)[::-1], place, *walk(1.0)], axis=1)
    moved: Floats = lines[np.abs(lines[:, 0] - lines[:, -1]).max(1) > 1e-9]
    return moved
