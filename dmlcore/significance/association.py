"""Rank correlation of two scores over the variants of a study, with a bootstrap interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dmlcore.typing import Floats

LEAST = 10  # smallest number of variants for which an interval is computed; with fewer, the bootstrap is too narrow
DRAWS = 5000  # bootstrap resamples


@dataclass(frozen=True)
class Association:
    """Spearman's rank correlation over `count` variants, and its 95 % bootstrap interval."""

    rho: float
    low: float
    high: float
    count: int

    @property
    def words(self) -> str:
        """Correlation as text, for example "rank correlation −0.62 (95 % interval −0.80 to −0.35) over 48 variants"."""
        return (
            f"rank correlation {_signed(self.rho)} (95 % interval {_signed(self.low)} to {_signed(self.high)}) over "
            f"{self.count} variants"
        )

    @property
    def short(self) -> str:
        """Correlation and interval without words, for example "−0.62 (−0.80 to −0.35)"."""
        return f"{_signed(self.rho)} ({_signed(self.low)} to {_signed(self.high)})"

    def sign(self) -> int:
        """Return 1 or -1 if the interval lies on one side of 0, else 0."""
        return int(self.low > 0) - int(self.high < 0)


def associate(x: Sequence[float], y: Sequence[float]) -> Association | None:
    """Compute the rank correlation of two scores and its bootstrap interval.

    Variants are resampled, because they are the independent samples; the mean over the seeds represents each of them.

    Args:
        x: One score per variant.
        y: The other score of the same variants.

    Returns:
        The correlation; None with fewer than LEAST variants, or if a score is the same for all of them.

    Raises:
        ValueError: If the scores have different lengths or are not finite.

    Reference:
        Efron & Tibshirani 1993, ch. 13 (percentile interval).
    """
    from scipy import stats  # slow to import

    first, second = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if first.shape != second.shape or first.ndim != 1 or not np.isfinite([first, second]).all():
        raise ValueError(
            f"x and y must be finite numbers, one of each per variant, got shapes {first.shape}, {second.shape}"
        )
    if len(first) < LEAST or min(np.ptp(first), np.ptp(second)) == 0:
        return None
    rows = np.random.default_rng(0).integers(0, len(first), (DRAWS, len(first)))
    with np.errstate(invalid="ignore"):  # a resample of a single value has no correlation
        drawn = _rank_correlation(stats.rankdata(first[rows], axis=-1), stats.rankdata(second[rows], axis=-1))
    rho = float(_rank_correlation(stats.rankdata(first), stats.rankdata(second)))
    low, high = np.nanquantile(drawn, [0.025, 0.975]).tolist()
    return Association(rho, low, high, len(first))


def _rank_correlation(first: Floats, second: Floats) -> Floats:
    """Return the correlation of ranks (..., n) over the last axis."""
    a, b = (ranks - ranks.mean(-1, keepdims=True) for ranks in (first, second))
    correlation: Floats = (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))
    return correlation


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")
