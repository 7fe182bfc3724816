"""Number of seeds needed to detect a difference, from the power of a two-sided t test on paired runs."""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import lru_cache

import numpy as np

from dmlcore.typing import Floats

LEVEL = 0.05  # significance level: probability of a significant result if there is no difference
POWER = 0.8  # required probability of detecting a difference that is as large as measured (Cohen 1988)
MOST = 1000  # maximum number of pairs; more are impractical to train
FEASIBLE = 30  # maximum number of pairs that is worth recommending
MIDPOINTS = (np.arange(1000) + 0.5) / 1000


def power(effect: float, pairs: int) -> float:
    """Return the probability that a two-sided paired t test on `pairs` >= 2 pairs is significant, to about 1e-4.

    The noncentral t distribution is computed as the mean of a normal distribution over the distribution of the sample
    standard deviation, because scipy 1.17 returns NaN for noncentrality parameters of 17 and more.

    Args:
        effect: Mean of the paired differences divided by their standard deviation.
        pairs: Number of pairs.

    Reference:
        Cohen (1988), Sec. 2.3.
    """
    from scipy import special  # slow to import

    shift, least = abs(effect) * math.sqrt(pairs), _least(pairs - 1)
    return float(np.mean(special.ndtr(shift - least) + special.ndtr(-shift - least)))


@lru_cache(maxsize=256)
def _least(freedom: int) -> Floats:
    """Return the smallest mean that is significant at LEVEL, in units of the true standard error.

    One value is returned for each quantile in MIDPOINTS of the sample standard deviation.
    """
    from scipy import stats

    least: Floats = stats.t.isf(LEVEL / 2, freedom) * np.sqrt(stats.chi2.ppf(MIDPOINTS, freedom) / freedom)
    return least


def pairs_needed(mean: float, deviation: float) -> int | None:
    """Return the smallest number of pairs that detects a difference with probability POWER.

    Returns None if more than MOST pairs are needed, as for a mean of 0; 2, the minimum, if the deviation is 0.

    Args:
        mean: Mean of the paired differences.
        deviation: Standard deviation of the paired differences.
    """
    if deviation <= 0:
        return 2 if mean else None
    effect = abs(mean) / deviation
    pairs = 2 + bisect_left(range(2, MOST + 1), POWER, key=lambda count: power(effect, count))
    return pairs if pairs <= MOST else None
