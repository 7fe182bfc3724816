"""Rounded upper limits of colour scales, chosen so that nearly all values lie below them; shared by pages and print."""

from __future__ import annotations

import math

import numpy as np

from dmlcore.typing import Floats


def percentile(values: Floats, percent: float) -> float:
    """Return the percentile `percent` (0..100) of the finite `values` of any shape; 1 if no value is finite."""
    inside = values[np.isfinite(values)]
    return float(np.percentile(inside, percent)) if inside.size else 1.0


def round_top(top: float, upper: float = math.inf) -> float:
    """Return the smaller of `top` and `upper`, rounded up to two significant digits.

    The result is 1 if the smaller one is not positive and finite.
    """
    top = min(top, upper)
    if not (math.isfinite(top) and top > 0):
        return 1.0
    digit = 10.0 ** (math.floor(math.log10(top)) - 1)
    return math.ceil(top / digit - 1e-9) * digit
