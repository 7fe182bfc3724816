"""Consistency of one threshold: its rates for each class, their inequality (OPIS), and its transfer to unseen classes.

Reference: Zhang et al. 2024 (arXiv 2307.04047), Sec. 3, for OPIS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike

from dmlcore.metrics.pair_counts import STEPS, count_per_class, grid_value
from dmlcore.metrics.retrieval import class_ids
from dmlcore.metrics.verification import Interval, PairCurve, Verification, sorted_samples, verification
from dmlcore.typing import Floats, Ints


class ClassRates(NamedTuple):
    """Rates of each class at each threshold, (C, T); NaN for a class of one sample in `tpr`."""

    thresholds: Floats  # (T,)
    classes: Ints  # (C,), sorted labels
    tpr: Floats  # share of accepted pairs of two samples of the class
    fmr: Floats  # share of accepted pairs of a sample of the class and a sample of another one


def class_rates(
    embeddings: ArrayLike | torch.Tensor,
    labels: ArrayLike | torch.Tensor,
    thresholds: Sequence[float] | Floats,
    *,
    device: torch.device | None = None,
) -> ClassRates:
    """Compute true positive and false match rates of each class at given thresholds.

    Args:
        embeddings: Shape (N, D), without zero rows.
        labels: Shape (N,), integers.
        thresholds: Cosine similarities in -1..1, ascending, shape (T,). They are rounded up to multiples of 2^-15.
        device: Device of the products; the CPU by default.

    Raises:
        TypeError, ValueError: As `verification`; and if thresholds are not ascending.
    """
    wanted = np.asarray(thresholds, dtype=float)
    if wanted.ndim != 1 or not len(wanted) or not (np.diff(wanted) >= 0).all() or not (np.abs(wanted) <= 1).all():
        raise ValueError("thresholds must be ascending numbers in -1..1")
    samples, classes = sorted_samples(embeddings, labels, device)
    steps = np.minimum(np.ceil((wanted + 1) * (STEPS / 2)).astype(np.int64), STEPS - 1)
    same, different = count_per_class(samples, steps, classes)
    with np.errstate(invalid="ignore"):
        tpr, fmr = same[:, 1:] / same[:, :1], different[:, 1:] / different[:, :1]
    return ClassRates(grid_value(steps), np.unique(class_ids("labels", labels, len(samples.codes))), tpr, fmr)


class Opis(NamedTuple):
    """Operating-point inconsistency score, computed from the utility of each class at each threshold."""

    rates: ClassRates
    utility: Floats  # (C, T), harmonic mean of TPR and 1 - FMR; NaN for a class of one sample

    @property
    def per_class(self) -> Floats:
        """Mean squared deviation of each class from the mean utility over the classes, (C,)."""
        deviations: Floats = self.utility - np.nanmean(self.utility, axis=0)
        return np.asarray((deviations**2).mean(axis=1))

    @property
    def score(self) -> float:
        """Mean over the classes of `per_class`."""
        return float(np.nanmean(self.per_class))


def opis(
    embeddings: ArrayLike | torch.Tensor,
    labels: ArrayLike | torch.Tensor,
    *,
    fmr_range: tuple[float, float] = (1e-3, 1e-1),
    points: int = 101,
    device: torch.device | None = None,
    curve: PairCurve | None = None,
) -> Opis:
    """Compute how unequal classes are at one threshold: the variance of their utility over a range of thresholds.

    The utility of a class is the harmonic mean of its true positive rate and 1 - FMR. Classes of one sample are left
    out.

    Args:
        embeddings: Shape (N, D), without zero rows.
        labels: Shape (N,), integers.
        fmr_range: Range of the false match rate of all pairs, from which the range of thresholds follows. The source
            leaves the choice to the application.
        points: Number of thresholds T, equally spaced.
        device: Device of the products; the CPU by default.
        curve: Result of `verification` for the same samples; computed by default.

    Reference:
        Zhang et al. 2024 (arXiv 2307.04047), Sec. 3; with cosine similarity in place of distances.
    """
    low, high = fmr_range
    if not 0 < low <= high <= 1:
        raise ValueError(f"fmr_range must be two ascending rates in 0..1, the first above 0, got {fmr_range}")
    curve = curve or verification(embeddings, labels, device=device)
    ends = [min(1.0, curve.threshold_at(rate)) for rate in (high, low)]
    rates = class_rates(embeddings, labels, np.linspace(ends[0], ends[1], points), device=device)
    specificity = 1 - rates.fmr
    with np.errstate(invalid="ignore"):
        utility = np.where(rates.tpr + specificity == 0, 0, 2 * rates.tpr * specificity / (rates.tpr + specificity))
    return Opis(rates, utility)


@dataclass(frozen=True)
class Transfer:
    """Rates on unseen classes at a threshold chosen on seen ones for a promised false match rate.

    Intervals contain 95 % of bootstrap samples: of the seen classes for the threshold, of both sets for the rates. They
    are None where one of these sets has fewer than three classes.
    """

    threshold: float
    threshold_interval: Interval | None  # at most 1, the highest cosine similarity
    promised: float
    measured: float  # false match rate
    interval: Interval | None
    fnmr: float
    fnmr_interval: Interval | None

    @property
    def ratio(self) -> float:
        """Measured by promised false match rate."""
        return self.measured / self.promised

    @property
    def ratio_interval(self) -> Interval | None:
        """Interval of the ratio."""
        return self.interval and Interval(*(end / self.promised for end in self.interval))


def transfer(seen: Verification, unseen: Verification, fmr: float) -> Transfer:
    """Choose the threshold for a false match rate on some classes, and measure that rate on others.

    Args:
        seen: Pairs of validation classes.
        unseen: Pairs of other classes.
        fmr: Promised false match rate, in 0..1, above 0.

    Raises:
        ValueError: If `fmr` is not in this range, below one pair of the seen classes, or below the rate of ties at the
            highest similarity.
    """
    if not 0 < fmr <= 1:
        raise ValueError(f"fmr must be in 0..1 and above 0, got {fmr}")
    if fmr * seen.different < 1:
        raise ValueError(
            f"a false match rate of {fmr:g} is below one of the {seen.different:,.0f} pairs of different classes from "
            "which the threshold is chosen: choose a higher rate, or more samples"
        )
    threshold = seen.threshold_at(fmr)
    if threshold > 1:
        raise ValueError(
            f"no threshold has a false match rate of at most {fmr:g} on the seen classes, because more pairs of "
            "different classes have the highest similarity: choose a higher rate, or embeddings that have not collapsed"
        )
    thresholds = [curve.threshold_at(fmr) for curve in seen.resampled]
    pairs = zip(thresholds, reversed(unseen.resampled), strict=False)
    fmrs, fnmrs = zip(*(curve.rates_at(chosen) for chosen, curve in pairs), strict=True)
    known = seen.has_intervals and unseen.has_intervals
    measured, fnmr_measured = unseen.rates_at(threshold)
    return Transfer(
        threshold=threshold,
        threshold_interval=_interval(np.minimum(thresholds, 1)) if seen.has_intervals else None,
        promised=fmr,
        measured=measured,
        interval=_interval(fmrs) if known else None,
        fnmr=fnmr_measured,
        fnmr_interval=_interval(fnmrs) if known else None,
    )


def _interval(drawn: Sequence[float] | Floats) -> Interval:
    """Return the interval with 95 % of the drawn values."""
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Interval(float(low), float(high))
