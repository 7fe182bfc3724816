"""Differences between scores and their noise, estimated over the seeds.

Contains paired tests, groups without a significant difference, and the spread between seeds. A difference is
significant if a two-sided t test over the seeds, paired if both sides have the same seeds, gives p < 0.05 after the
correction of Benjamini and Hochberg (1995) for the number of comparisons made together.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dmlcore.significance.power import LEVEL, pairs_needed

Values = Mapping[int, float]  # seed -> score in 0..1


@dataclass(frozen=True)
class Gap:
    """Difference of two scores (first minus second) over the seeds.

    Attributes:
        mean: Mean difference.
        deviation: Standard deviation of the paired differences, or of the unpaired difference; None if unknown.
        count: Number of pairs, or number of seeds of the smaller side.
        paired: True if both sides have the same seeds.
        p: Two-sided p-value; None if a side has a single seed.
    """

    mean: float
    deviation: float | None
    count: int
    paired: bool
    p: float | None

    @property
    def needed(self) -> int | None:
        """Number of seeds per side with which a paired t test detects this difference with probability power.POWER.

        The test is two-sided at level power.LEVEL, without correction. None if the noise is unknown, the mean is 0, or
        more than power.MOST seeds are needed.
        """
        return None if self.deviation is None else pairs_needed(self.mean, self.deviation)

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % confidence interval (t test) of a paired difference; None if unpaired or from a single seed."""
        return _interval(self.mean, self.deviation, self.count) if self.paired and self.deviation is not None else None

    @property
    def words(self) -> str:
        """Difference as text, for example "+0.27 ± 0.12 points, paired over 3 seeds"."""
        if self.deviation is None:
            return f"{spread(self.mean, None, sign=True)} points, one seed"
        how = f"paired over {self.count} seeds" if self.paired else f"unpaired, {self.count} seeds"
        return f"{spread(self.mean, self.deviation, sign=True)} points, {how}"


@dataclass(frozen=True)
class Separation:
    """Spread between variants compared with the spread between seeds.

    Attributes:
        means: Standard deviation of the variants' means.
        pooled: Pooled standard deviation within variants.
        paired: Pooled standard deviation within variants after removing seed effects that all variants share; None
            unless the variants have the same seeds.
        chance: Expected ratio of `means` to `pooled` for identical variants, 1 / sqrt(number of seeds).
    """

    means: float
    pooled: float
    paired: float | None
    chance: float

    @property
    def ratio(self) -> float:
        """Ratio of `means` to `pooled`; infinite if all seeds give the same score."""
        return self.means / self.pooled if self.pooled else math.inf

    @property
    def words(self) -> str:
        """Comparison as a sentence."""
        digits = 1 if self.pooled >= 0.005 else 2
        same = f", or {self.means / self.paired:.1f} if compared seed by seed" if self.paired else ""
        return (
            f"The means of the variants have a standard deviation of {100 * self.means:.{digits}f} points, the seeds "
            f"of a variant {100 * self.pooled:.{digits}f} points: a ratio of {self.ratio:.1f}{same}. "
            f"Identical variants would have a ratio of {self.chance:.1f}."
        )


def gap(first: Values, second: Values) -> Gap:
    """Compute the first score minus the second with its noise; each side needs at least one seed."""
    from scipy import stats  # slow to import

    paired = set(first) == set(second)
    mean = statistics.fmean(first.values()) - statistics.fmean(second.values())
    count = min(len(first), len(second))
    if count < 2:
        return Gap(mean, None, count, paired, None)
    if paired:
        deviation = statistics.stdev(first[seed] - second[seed] for seed in first)
        error, freedom = deviation / math.sqrt(count), float(count - 1)
    else:  # Welch
        own = [statistics.variance(side.values()) / len(side) for side in (first, second)]
        error = math.sqrt(sum(own))
        deviation = error * math.sqrt(count)
        terms = sum(part**2 / (len(side) - 1) for part, side in zip(own, (first, second), strict=True))
        freedom = sum(own) ** 2 / terms if terms else 1.0
    p = float(2 * stats.t.sf(abs(mean) / error, freedom)) if error else float(mean == 0)
    return Gap(mean, deviation, count, paired, p)


def clear(gaps: Sequence[Gap]) -> list[bool]:
    """Return for each difference True if it is significant after correction for the number of differences."""
    from scipy import stats

    known = [i for i, each in enumerate(gaps) if each.p is not None]
    marks = [False] * len(gaps)
    if known:
        adjusted = stats.false_discovery_control([float(gaps[i].p or 0.0) for i in known])
        for i, p in zip(known, adjusted, strict=True):
            marks[i] = bool(p < LEVEL)
    return marks


def separation(variants: Mapping[str, Values]) -> Separation | None:
    """Compare the spread between variants with the spread between seeds.

    Returns None unless at least two variants have two or more seeds.
    """
    known = [values for values in variants.values() if len(values) > 1]
    if len(known) < 2:
        return None
    freedom = [len(values) - 1 for values in known]
    within = [statistics.variance(values.values()) * free for values, free in zip(known, freedom, strict=True)]
    paired = None
    if all(set(values) == set(known[0]) for values in known):
        of_seed = [statistics.fmean(values[seed] for values in known) for seed in known[0]]
        left = sum(within) - len(known) * statistics.variance(of_seed) * freedom[0]
        paired = math.sqrt(max(0.0, left) / ((len(known) - 1) * freedom[0]))
    return Separation(
        means=statistics.stdev(statistics.fmean(values.values()) for values in known),
        pooled=math.sqrt(sum(within) / sum(freedom)),
        paired=paired,
        chance=math.sqrt(statistics.fmean(1 / len(values) for values in known)),
    )


def top(variants: Mapping[str, Values]) -> tuple[str, ...]:
    """Return the best variant and all that do not differ significantly from it, best first.

    A single name means that the best variant is significantly ahead.
    """
    order = sorted(variants, key=lambda name: -statistics.fmean(variants[name].values()))
    to_best = [gap(variants[order[0]], variants[name]) for name in order[1:]]
    return (*order[:1], *(name for name, sure in zip(order[1:], clear(to_best), strict=True) if not sure))


def over_classes(differences: Iterable[float]) -> str:
    """Describe the paired differences (C,) of MAP@R over C >= 2 test classes, and whether they extend to other classes.

    Queries of the same class share their neighbours, so the classes are the independent samples of the t test.
    """
    items = list(differences)
    low, high = class_interval(items)
    holds = "holds for other classes too" if low * high > 0 else "may not hold for other classes"
    return (
        f"MAP@R is higher in {sum(each > 0 for each in items)} and lower in {sum(each < 0 for each in items)} of "
        f"{len(items)} test classes. The 95 % interval of the mean difference is {ends(low, high)} points, so the "
        f"difference {holds}."
    )


def class_interval(differences: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % confidence interval (t test) of the mean of differences (C,); infinite for a single value."""
    mean, deviation = mean_and_deviation(differences)
    return (-math.inf, math.inf) if deviation is None else _interval(mean, deviation, len(differences))


def _interval(mean: float, deviation: float, count: int) -> tuple[float, float]:
    """Return the 95 % confidence interval (t test) of the mean of `count` >= 2 values."""
    from scipy import stats

    half = float(stats.t.isf(LEVEL / 2, count - 1)) * deviation / math.sqrt(count)
    return mean - half, mean + half


def ends(low: float, high: float) -> str:
    """Format an interval given as fractions in percentage points, for example "−0.4 to +1.0"."""
    return f"{100 * low:+.1f} to {100 * high:+.1f}".replace("-", "−")


def spread(mean: float, deviation: float | None, *, sign: bool = False) -> str:
    """Format a share in 0..1 and its deviation in percent with suitable digits, for example "1.37 ± 0.04"."""
    noise = 1.0 if deviation is None else 100 * deviation
    digits = 1 if noise >= 0.5 else 2 if noise >= 0.005 else 3
    if noise == 0:  # identical for every seed
        digits = 1 if abs(mean) >= 0.1 else 2
    shown = f"{100 * mean:{'+' if sign else ''}.{digits}f}".replace("-", "−")
    if deviation is None:
        return shown
    written = f"{noise:.{digits}f}"
    return f"{shown} ± {'0' if noise == 0 else written if float(written) else '< 0.001'}"


def mean_and_deviation(values: Iterable[float]) -> tuple[float, float | None]:
    """Return the mean and the sample standard deviation (ddof=1), which is None for a single value."""
    numbers = list(values)
    return statistics.fmean(numbers), statistics.stdev(numbers) if len(numbers) > 1 else None
