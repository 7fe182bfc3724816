"""Where a colour scale ends: far enough for nearly all values, a round number, the same rule on page and paper."""

from __future__ import annotations

import math

import numpy as np

from dmlcore.typing import Floats


def stays_below(values: Floats, percent: float) -> float:
    """What `percent` (0..100) of the finite `values`, any shape, stay below; 1 where there are none."""
    inside = values[np.isfinite(values)]
    return float(np.percentile(inside, percent)) if inside.size else 1.0


def round_top(top: float, upper: float = math.inf) -> float:
    """`top`, at most `upper`, rounded up to two digits; 1 where it is no scale (0, negative, infinite)."""
    top = min(top, upper)
    if not (math.isfinite(top) and top > 0):
        return 1.0
    digit = 10.0 ** (math.floor(math.log10(top)) - 1)
    return math.ceil(top / digit - 1e-9) * digit
