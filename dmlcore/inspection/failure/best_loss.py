"""Which loss ranks a query best after one step: by AP@R, then by the rank of P, then by the rank of N."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dmlcore.inspection.failure.one_step import NeighbourRanks

# The columns in the order in which they judge; larger is better.
COLUMNS: Mapping[str, Callable[[NeighbourRanks], float]] = {
    "ap": lambda ranks: ranks.average_precision,
    "right": lambda ranks: -ranks.right,
    "wrong": lambda ranks: ranks.wrong,
}


def merit(ranks: NeighbourRanks) -> tuple[float, ...]:
    """What orders standings, the better the larger."""
    return tuple(of(ranks) for of in COLUMNS.values())


@dataclass(frozen=True)
class BestLoss:
    """The losses that rank the query best, and what told them from the others.

    names: one, or those that are equal in every column, in the order given. gain: 1 where they rank it better than
    before the step, 0 as before, -1 worse. decided: the column of COLUMNS that left out the last of the others; None
    where all losses are equal. leaders: by column, the losses with its best value; none where that is no better than
    before, or where all share it.
    """

    names: tuple[str, ...]
    gain: int
    decided: str | None
    leaders: Mapping[str, tuple[str, ...]]


def best_loss(before: NeighbourRanks, after: Mapping[str, NeighbourRanks]) -> BestLoss:
    """Judge the standings after a step of each loss, by its name; raises ValueError without any."""
    if not after:
        raise ValueError("after must hold a standing of at least one loss")
    merits = {name: merit(ranks) for name, ranks in after.items()}
    top, now = max(merits.values()), merit(before)
    names = tuple(name for name, each in merits.items() if each == top)
    alike = [sum(each[: i + 1] == top[: i + 1] for each in merits.values()) for i in range(len(COLUMNS))]
    decided = None if len(names) == len(merits) else list(COLUMNS)[alike.index(len(names))]
    leaders = {}
    for key, value in COLUMNS.items():
        best = max(value(ranks) for ranks in after.values())
        lead = tuple(name for name, ranks in after.items() if value(ranks) == best)
        leaders[key] = lead if best > value(before) and len(lead) < len(after) else ()
    return BestLoss(names, (top > now) - (top < now), decided, leaders)
