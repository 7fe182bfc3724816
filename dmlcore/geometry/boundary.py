"""Where a scanned energy crosses a level: the inner and outer boundary of the in-loss-miner region."""

from __future__ import annotations

from typing import cast

import contourpy
import numpy as np
from numpy.typing import NDArray

Lines = list[NDArray[np.float64]]


def level_lines(x: NDArray[np.float64], y: NDArray[np.float64], raw: NDArray[np.float64], level: float) -> Lines:
    """Polylines, (K, 2) each, along which raw (H, W) on the grid x (W,) times y (H,) equals `level`.

    raw may hold infinities (diverging push): it is compressed by asinh about the level first, which keeps the level
    where it is and makes linear interpolation beside a singular point accurate.
    """
    compressed = np.arcsinh(np.clip(raw - level, -1e9, 1e9) / 0.1)
    return cast(Lines, contourpy.contour_generator(x, y, compressed).lines(0.0))
