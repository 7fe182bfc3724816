"""Where a scanned energy crosses a level: boundaries of the in-loss-miner region, equipotential lines."""

from __future__ import annotations

from typing import cast

import contourpy
import numpy as np
from numpy.typing import NDArray

Lines = list[NDArray[np.float64]]


class Levels:
    """Level lines of raw (H, W) on the grid x (W,) times y (H,).

    raw may hold infinities (diverging push): it is compressed by asinh first, so that linear interpolation beside a
    singular point stays accurate.
    """

    def __init__(self, x: NDArray[np.float64], y: NDArray[np.float64], raw: NDArray[np.float64]) -> None:
        self.lowest, self.highest = float(np.nanmin(raw)), float(np.nanmax(raw))
        compressed = _compress(np.nan_to_num(raw, posinf=1e9, neginf=-1e9))
        self._contours = contourpy.contour_generator(x, y, compressed)

    def lines(self, level: float) -> Lines:
        """Polylines, (K, 2) each, along which raw equals `level`."""
        if not self.lowest <= level <= self.highest:
            return []
        return cast(Lines, self._contours.lines(float(_compress(level))))


def _compress(raw: NDArray[np.float64] | float) -> NDArray[np.float64]:
    return np.arcsinh(np.clip(raw, -1e9, 1e9) / 0.1)


def level_lines(x: NDArray[np.float64], y: NDArray[np.float64], raw: NDArray[np.float64], level: float) -> Lines:
    """`Levels(x, y, raw).lines(level)`, for a single level."""
    return Levels(x, y, raw).lines(level)
