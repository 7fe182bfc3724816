"""Difference between a trained network and the best baseline that needs no training, with its noise.

The noise is that of the test classes: a bootstrap draws classes with replacement, so a difference is significant if it
is to be expected on other classes, too. Noise between training runs needs several seeds (`verdicts`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmlcore.significance.verdicts import NAMES, spread
from dmlcore.typing import Floats, Ints

MOST_GROUPS = 500  # classes beyond this number share groups, so that a metrics row stays small
DRAWS = 2000
WITHIN = (2.5, 97.5)  # percentiles that limit the interval
SCORES = ("map_at_r", "recall_at_1")


@dataclass(frozen=True)
class TrainingGain:
    """Difference of test MAP@R, in 0..1, between the trained network and its best untrained baseline.

    Attributes:
        baseline: Name of the baseline, a key of `verdicts.NAMES`.
        mean: Score of the trained network minus that of the baseline.
        low: Lower end of the 95 % interval over test classes.
        high: Upper end of the interval.
    """

    baseline: str
    mean: float
    low: float
    high: float

    @property
    def words(self) -> str:
        """Verdict as one sentence, which says "gained" only if the difference is significant."""
        return f"{self._verdict} ({self._name}, test MAP@R {self._points} points; 95 % interval over test classes)."

    @property
    def short(self) -> str:
        """Verdict as a shorter sentence, without the score and the meaning of the interval."""
        return f"{self._verdict} ({self._name}, {self._points} points)."

    @property
    def _name(self) -> str:
        return NAMES[self.baseline].removeprefix("the ")

    @property
    def _points(self) -> str:
        return f"{spread(self.mean, None, sign=True)} ± {50 * (self.high - self.low):.1f}"

    @property
    def _verdict(self) -> str:
        if self.low > 0:
            verb = "gained over"
        elif self.high < 0:
            verb = "ended significantly below"
        else:
            verb = "did not gain over"
        return f"Training {verb} the best untrained baseline"


def sum_by_group(labels: Ints, values: Mapping[str, Floats]) -> dict[str, list[float]]:
    """Return the number of scored queries and the sums of their scores in each group of classes, for a metrics row.

    Args:
        labels: Labels of the queries, (Q,).
        values: Scores of the queries by name, (Q,) each, NaN for queries without a match.

    Returns:
        Lists of at most MOST_GROUPS numbers under "queries" and the names of the scores. Each class is a group, ordered
        by label; if there are more classes, class number k belongs to group k modulo MOST_GROUPS.
    """
    groups = np.unique(labels, return_inverse=True)[1] % MOST_GROUPS
    scored = ~np.isnan(next(iter(values.values())))
    count = int(groups.max()) + 1 if len(groups) else 0
    queries = np.bincount(groups[scored], minlength=count)
    sums = {name: np.bincount(groups[scored], each[scored], minlength=count) for name, each in values.items()}
    return {"queries": queries.tolist()} | {name: np.round(each, 6).tolist() for name, each in sums.items()}


def difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[float, float, float]:
    """Return the difference of MAP@R, in 0..1, between two results of `sum_by_group`, and its 95 % interval.

    Both must be of the same queries. The bootstrap draws groups of classes, the same for both sides.

    Raises:
        ValueError: If the results are of different queries, or contain none.
    """
    queries = np.asarray(one["queries"], np.float64)
    if not queries.sum() or not np.array_equal(queries, np.asarray(other["queries"])):
        raise ValueError("the scores are of different queries")
    sums = np.asarray(one["map_at_r"], np.float64) - np.asarray(other["map_at_r"], np.float64)
    drawn = np.random.default_rng(0).integers(0, len(sums), (DRAWS, len(sums)))
    totals = queries[drawn].sum(1)
    low, high = np.percentile(sums[drawn].sum(1)[totals > 0] / totals[totals > 0], WITHIN)
    return float(sums.sum() / queries.sum()), float(low), float(high)


def gain(scores: Mapping[str, Mapping[str, Any]], *, started: bool) -> TrainingGain | None:
    """Compare the trained network of a run with the best of its untrained baselines.

    Args:
        scores: Rows of kind "scores" by what was scored.
        started: True if the network was initialised with pretrained weights.

    Returns:
        The difference, or None if the run is not tested, its score is transductive, or it has no scores of groups of
            classes, as in old releases.
    """
    trained = scores.get("trained", {})
    untrained = {name: row for name, row in scores.items() if name in NAMES and row.get("map_at_r") is not None}
    if trained.get("map_at_r") is None or trained.get("transductive") or not untrained:
        return None
    best = max(untrained, key=lambda name: untrained[name]["map_at_r"])
    try:
        interval = difference(trained["by_class"], untrained[best]["by_class"])
    except (KeyError, TypeError, ValueError):
        return None
    return TrainingGain("pretrained" if started and best == "untrained" else best, *interval)
