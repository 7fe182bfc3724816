"""Comparison of losses after one gradient step: by the AP@R of a query, then by the rank of its correct neighbour."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dmlcore.inspection.failure.one_step import NeighbourRanks

TIE = 0.1  # two values tie if they differ by at most this fraction of the best improvement


@dataclass(frozen=True)
class Measure:
    """Measure of how well the neighbours of a query are ranked.

    Args:
        value: Function of the ranks; larger is better.
        resolution: Difference up to which two values always count as tied.
    """

    value: Callable[[NeighbourRanks], float]
    resolution: float


MEASURES: Mapping[str, Measure] = {
    "ap": Measure(lambda ranks: ranks.average_precision, 0.01),
    "right": Measure(lambda ranks: -ranks.right, 1.0),
    "wrong": Measure(lambda ranks: ranks.wrong, 1.0),
}
JUDGES = ("ap", "right")  # deciding measures, in this order; AP@R already reflects the rank of the incorrect neighbour


def merit(ranks: NeighbourRanks) -> tuple[float, ...]:
    """Return a key that sorts `NeighbourRanks` from worst to best. Unlike in `best_loss`, only equal values tie."""
    return tuple(measure.value(ranks) for measure in MEASURES.values())


@dataclass(frozen=True)
class BestLoss:
    """Losses with the best neighbour ranks for a query after one gradient step.

    Attributes:
        names: The best loss, or all losses that tie for the best, in the order given.
        gain: 1 if the ranks after the step are better than before it, 0 if about equal, -1 if worse.
        leaders: For each measure, the losses that tie for the best value. Empty if all losses tie, or if the best value
            is not better than before the step by more than the tolerance for ties.
    """

    names: tuple[str, ...]
    gain: int
    leaders: Mapping[str, tuple[str, ...]]


def best_loss(before: NeighbourRanks, after: Mapping[str, NeighbourRanks]) -> BestLoss:
    """Return the losses with the best neighbour ranks for a query after one gradient step.

    The measures in JUDGES are applied in turn, and each keeps the remaining losses that tie with the best one. Two
    values tie if they differ by at most the resolution of the measure, or by at most TIE times the best improvement
    over `before`.

    Args:
        before: Ranks before the step.
        after: Ranks after the step of each loss, by name.

    Raises:
        ValueError: If `after` is empty.
    """
    if not after:
        raise ValueError("after must hold the ranks of at least one loss")
    names = tuple(after)
    for key in JUDGES:
        names = _tied(key, before, {name: after[name] for name in names})
    leaders = {}
    for key, measure in MEASURES.items():
        lead = _tied(key, before, after)
        improves = max(map(measure.value, after.values())) - measure.value(before) > measure.resolution
        leaders[key] = lead if improves and len(lead) < len(after) else ()
    return BestLoss(names, _gain(before, [after[name] for name in names]), leaders)


def _tied(key: str, before: NeighbourRanks, after: Mapping[str, NeighbourRanks]) -> tuple[str, ...]:
    """Return the names of the losses with a value of measure `key` that ties with the best value."""
    measure = MEASURES[key]
    values = {name: measure.value(ranks) for name, ranks in after.items()}
    best = max(values.values())
    room = max(measure.resolution, TIE * (best - measure.value(before)))
    return tuple(name for name, value in values.items() if best - value <= room)


def _gain(before: NeighbourRanks, best: list[NeighbourRanks]) -> int:
    """Return the sign of the first change from `before` that exceeds the resolution of its measure; 0 if none does."""
    for measure in map(MEASURES.__getitem__, JUDGES):
        change = max(map(measure.value, best)) - measure.value(before)
        if abs(change) > measure.resolution:
            return 1 if change > 0 else -1
    return 0
