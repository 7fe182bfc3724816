"""How many seeds a difference asks for: the power of a two-sided t test on paired runs."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dmlcore.typing import Floats

LEVEL = 0.05  # probability of calling a difference clear where there is none
POWER = 0.8  # probability of calling it clear where it is as large as measured (Cohen 1988)
MOST = 1000  # pairs, beyond which nobody trains
FEASIBLE = 30  # pairs, beyond which more of them are no advice
MIDPOINTS = (np.arange(1000) + 0.5) / 1000


def power(effect: float, pairs: int, level: float = LEVEL) -> float:
    """Probability that a two-sided paired t test of so many pairs (>= 2) finds a difference, to about 1e-4.

    effect: mean of the paired differences over their deviation. Source: Cohen (1988), Sec. 2.3. The noncentral t as
    the mean of a normal over the distribution of the deviation: that of scipy 1.17 is NaN from a shift of 17 on.
    """
    from scipy import special  # slow to import

    shift, least = abs(effect) * math.sqrt(pairs), _least(pairs - 1, level)
    return float(np.mean(special.ndtr(shift - least) + special.ndtr(-shift - least)))


@lru_cache(maxsize=256)
def _least(freedom: int, level: float) -> Floats:
    """What a mean must pass to be called clear, in its own deviations, at equally likely deviations of a sample."""
    from scipy import stats

    least: Floats = stats.t.isf(level / 2, freedom) * np.sqrt(stats.chi2.ppf(MIDPOINTS, freedom) / freedom)
    return least


def pairs_needed(mean: float, deviation: float, level: float = LEVEL, wanted: float = POWER) -> int | None:
    """The fewest pairs with which a difference of this mean and deviation is found with probability `wanted`.

    None where more than MOST were needed, as for a mean of 0; 2, the fewest there are, where nothing deviates.
    """
    if deviation <= 0:
        return 2 if mean else None
    effect = abs(mean) / deviation
    low, high = 1, 2  # low is never enough
    while power(effect, high, level) < wanted:
        low, high = high, 2 * high
        if low >= MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(effect, middle, level) >= wanted else (middle, high)
    return high if high <= MOST else None
