"""Threshold of cosine similarity from which two samples count as the same class, and what it gives on unseen classes.

The threshold is chosen on seen classes for a promised false match rate. Unseen classes are usually closer together than
seen ones, so the rate measured on them is higher. `class_sides` defines both sets of classes.

Example:
    >>> from dmlcore.inspection import threshold
    >>> chosen = threshold(run, fmr=0.01)  # doctest: +SKIP
    >>> chosen.threshold, chosen.unseen.fmr, chosen.ratio  # doctest: +SKIP
    (0.63, 0.028, 2.8)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from dmlcore import metrics
from dmlcore.inspection.class_sides import ClassSides, Load, Side, ThresholdError, baselines, sides
from dmlcore.metrics.verification import Interval
from dmlcore.storage.runs import Run, open_run

__all__ = [
    "FMR",
    "ClassSides",
    "Rates",
    "Recommendation",
    "Side",
    "ThresholdError",
    "baselines",
    "describe",
    "percent",
    "recommend",
    "sides",
    "threshold",
]

FMR = 0.01  # default of the promised false match rate


@dataclass(frozen=True)
class Rates:
    """Rates on one set of classes, each in 0..1, with 95 % intervals from a bootstrap over classes.

    Intervals are None where fewer than three classes leave them unknown.

    Attributes:
        name: Description of the classes.
        classes: Number of classes.
        samples: Number of samples.
        same: Number of pairs of the same class.
        different: Number of pairs of different classes.
        fmr: False match rate at the recommended threshold. The interval of the unseen classes includes the uncertainty
            of the threshold; that of the seen classes is for a fixed threshold.
        fnmr: False non-match rate at the threshold, 1 - true positive rate; interval as for `fmr`.
        eer: Equal error rate, at the threshold of these classes where FMR = FNMR.
        opis: Variance over classes of the utility at one threshold (`dmlcore.metrics.opis`).
    """

    name: str
    classes: int
    samples: int
    same: int
    different: int
    fmr: float
    fmr_interval: Interval | None
    fnmr: float
    fnmr_interval: Interval | None
    eer: float
    eer_interval: Interval | None
    opis: float

    @property
    def tpr(self) -> float:
        """True positive rate at the threshold."""
        return 1 - self.fnmr


@dataclass(frozen=True)
class Recommendation:
    """Recommended threshold for a promised false match rate.

    Attributes:
        threshold: Cosine similarity of at least which two samples are accepted as the same class.
        threshold_interval: 95 % interval from a bootstrap over the seen classes.
        promised: Promised false match rate, for which the threshold was chosen.
        seen: Rates on the classes on which it was chosen.
        unseen: Rates on other classes, which are those to expect.
        ratio: Measured by promised false match rate.
        ratio_interval: 95 % interval of the ratio.
        note: Sentence about the choice of the classes, or "".
    """

    threshold: float
    threshold_interval: Interval | None
    promised: float
    seen: Rates
    unseen: Rates
    ratio: float
    ratio_interval: Interval | None
    note: str = ""

    @property
    def distance(self) -> float:
        """Threshold as Euclidean distance of unit vectors: at most this far apart, two samples are accepted."""
        return math.sqrt(max(0.0, 2 - 2 * self.threshold))

    @property
    def sentence(self) -> str:
        """Threshold and what to expect, in one sentence."""
        rates = self.unseen
        return (
            f"Recommended threshold for {percent(self.promised)} false matches: {self.threshold:.4f}; expect "
            f"{percent(rates.fmr, rates.fmr_interval)} on unseen classes."
        )

    def to_json(self) -> str:
        """Return all values as JSON."""
        return _ADAPTER.dump_json(self).decode()

    @classmethod
    def from_json(cls, text: str) -> Recommendation:
        """Return what `to_json` has written; raises ValueError for anything else."""
        recommendation: Recommendation = _ADAPTER.validate_json(text)
        return recommendation


_ADAPTER: TypeAdapter[Any] = TypeAdapter(Recommendation)


def threshold(run: Run | str | Path, fmr: float = FMR, *, load: Load | None = None) -> Recommendation:
    """Recommend a threshold for the embeddings of a run or of an embedding set.

    Args:
        run: Evaluated run or embedding set, its folder, or its id in the default store ($DML_RUNS, else ./runs).
        fmr: Promised false match rate, in 0..1, above 0.
        load: Function that reads the data set of a spec; see `class_sides.sides`.

    Raises:
        RunError: There is no such run.
        ThresholdError: There are no seen or unseen classes; see `class_sides.sides`.
        ValueError: `fmr` is not in this range, or below one pair of the seen classes.
        Unreadable, DataError, CheckpointError: Files of the run or the data set cannot be read.
    """
    return recommend(sides(open_run(run), load=load), fmr)


def recommend(pair: ClassSides, fmr: float = FMR) -> Recommendation:
    """Recommend a threshold from seen classes, and measure its rates on unseen ones.

    The pairs of both sides are counted once; further calls with other rates take milliseconds.

    Args:
        pair: Seen and unseen classes.
        fmr: Promised false match rate, in 0..1, above 0.

    Raises:
        ValueError: `fmr` is not in this range, below one pair of the seen classes, or below the rate of ties at the
            highest similarity.
    """
    seen, unseen = pair.seen.pairs, pair.unseen.pairs
    moved = metrics.transfer(seen, unseen, fmr)
    chosen_fmr, chosen_fnmr = seen.rates_at(moved.threshold)
    fmr_interval = seen.interval(lambda curve: curve.rates_at(moved.threshold)[0])
    fnmr_interval = seen.interval(lambda curve: curve.rates_at(moved.threshold)[1])
    return Recommendation(
        threshold=moved.threshold,
        threshold_interval=moved.threshold_interval,
        promised=fmr,
        seen=_rates(pair.seen, (chosen_fmr, chosen_fnmr), fmr_interval, fnmr_interval),
        unseen=_rates(pair.unseen, (moved.measured, moved.fnmr), moved.interval, moved.fnmr_interval),
        ratio=moved.ratio,
        ratio_interval=moved.ratio_interval,
        note=pair.note,
    )


def _rates(
    side: Side, rates: tuple[float, float], fmr_interval: Interval | None, fnmr_interval: Interval | None
) -> Rates:
    pairs = side.pairs
    return Rates(
        name=side.name,
        classes=side.classes,
        samples=len(side.labels),
        same=int(pairs.same),
        different=int(pairs.different),
        fmr=rates[0],
        fmr_interval=fmr_interval,
        fnmr=rates[1],
        fnmr_interval=fnmr_interval,
        eer=pairs.eer,
        eer_interval=pairs.interval(lambda curve: curve.eer),
        opis=side.opis.score,
    )


def describe(recommendation: Recommendation) -> str:
    """Return a recommendation as text: sentence, intervals, and a table with one column per set of classes."""
    columns, unseen = (recommendation.seen, recommendation.unseen), recommendation.unseen
    rows: list[tuple[str, ...]] = [
        ("", *(rates.name for rates in columns)),
        ("classes / samples", *(f"{rates.classes:,} / {rates.samples:,}" for rates in columns)),
        ("false match rate", *(percent(rates.fmr, rates.fmr_interval) for rates in columns)),
        ("false non-match rate", *(percent(rates.fnmr, rates.fnmr_interval) for rates in columns)),
        ("equal error rate", *(percent(rates.eer, rates.eer_interval) for rates in columns)),
        ("OPIS", *(f"{rates.opis:.2e}" for rates in columns)),
    ]
    within, ratio = recommendation.threshold_interval, recommendation.ratio_interval
    lines = [
        recommendation.sentence,
        f"The threshold is a cosine similarity{f', {within.low:.4f} to {within.high:.4f}' if within else ''}; as a "
        f"distance of unit vectors at most {recommendation.distance:.4f}.",
        f"Measured by promised false match rate: {recommendation.ratio:.2f}"
        f"{f' ({ratio.low:.2f} to {ratio.high:.2f})' if ratio else ''}. It misses "
        f"{percent(unseen.fnmr, unseen.fnmr_interval)} of the pairs of the same class.",
        "",
        *(f"{name:22}{one:30}{other}".rstrip() for name, one, other in rows),
        "Intervals contain 95 % of bootstrap samples of the classes; fewer than three classes give none.",
    ]
    return "\n".join([*lines, *([f"Note: {recommendation.note}."] if recommendation.note else [])])


def percent(value: float, interval: Interval | None = None) -> str:
    """Return a share as text, such as "2.8 %" or "2.8 % (1.9 to 4.1 %)"."""
    ends = "" if interval is None else f" ({_digits(interval.low)} to {_digits(interval.high)} %)"
    return f"{_digits(value)} %{ends}"


def _digits(share: float) -> str:
    """Return a share in percent with two digits, or three for 100."""
    value = 100 * share
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"
