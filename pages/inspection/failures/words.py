"""Which loss ranks a query best, and why the step of three embeddings and that of the weights differ, in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dmlcore import losses
from dmlcore.inspection.failure.best_loss import BestLoss
from dmlcore.inspection.failure.one_step import NeighbourRanks
from dmlcore.spec.sections import OptimiserSpec
from pages.shared.words.labels import WORDS

EVEN = ("adam", "adamw", "rmsprop")  # their first step is as long for a weak gradient of a weight as for a strong one

NAMED = 3  # losses of a tie that are named
JUDGED = "Judged by AP@R, then by the rank of P (lower is better), then by the rank of N (higher is better)"
DECIDED = {"ap": "AP@R decides", "right": "the rank of P decides", "wrong": "the rank of N decides"}


def verdict(best: BestLoss, before: NeighbourRanks, after: NeighbourRanks) -> tuple[str, str]:
    """Which loss ranks the query best, and by what it was judged; after: the standing that those losses share."""
    judged = f"{JUDGED}; here {DECIDED[best.decided]}." if best.decided else f"{JUDGED}."
    if best.gain <= 0:
        leave = "every step ranks it lower" if best.gain < 0 else "the best steps leave it as it is"
        return f"No loss ranks this query better: {leave}.", judged
    titles = [losses.describe(name).title for name in best.names]
    more = len(titles) - NAMED
    if more > 0:
        titles[NAMED:] = [f"{more} more"]
    them = f"{', '.join(titles[:-1])} and {titles[-1]}, alike" if len(titles) > 1 else titles[0]
    first, then = (f"{100 * each.average_precision:.1f}" for each in (before, after))
    changes = [
        f"AP@R {first} → {then} %" if first != then else f"AP@R {then} %",
        f"P {before.right:,} → {after.right:,}" if before.right != after.right else f"P stays at {after.right:,}",
        f"N {before.wrong:,} → {after.wrong:,}" if before.wrong != after.wrong else f"N stays at {after.wrong:,}",
    ]
    return f"Best for this query: {them}. {', '.join(changes)}.", judged


def price(before: float | None, after: float | None) -> str:
    """What a step that helps one query does to all of them, by MAP@R; "" where that is not known."""
    if before is None or after is None:
        return ""
    first, then = (f"{100 * each:.2f}" for each in (before, after))
    if first == then:
        return f"MAP@R of all queries stays at {then} %."
    change = f"MAP@R of all queries {first} → {then} %"
    if after > before:
        return f"{change}: the others gain too."
    return f"{change}: the others pay for it, as one triplet alone pulls the weights its own way."


def why(name: str, before: Mapping[str, Any], after: Mapping[str, Any], free: NeighbourRanks, by: OptimiserSpec) -> str:
    """What the two steps of a loss do to the right neighbour P, whether they agree, and why they need not.

    before, after: of `true_step.read`; free: where the same loss puts the three embeddings alone; by: the optimiser.
    """
    title = losses.describe(name).title
    if not after["active"]:
        return f"{title} has no force on this triplet: neither step moves anything."
    first, freely, truly = int(before["right"]), free.right, int(after["right"])
    steps = f"Right P with {title}: {_move(first, freely)} by the free step, {_move(first, truly)} by the true one."
    agree = (first > freely) == (first > truly) and (first < freely) == (first < truly)
    rule = WORDS.get(by.name, by.name)
    even = (
        f" The first step of {rule} moves each weight about equally far, however weakly it is pulled."
        if by.name in EVEN
        else ""
    )
    differ = (
        "The free step moves A, P and N along their forces and nothing else. The true step is one of "
        f"{rule} at learning rate {by.learning_rate:g} on weights that all samples share, so every embedding moves."
        f"{even}"
    )
    verdict = "They agree in direction; how far each goes need not." if agree else "They disagree."
    return " ".join(filter(None, (steps, verdict, differ, _distance(before, after, first, truly))))


def _move(before: int, after: int) -> str:
    if before == after:
        return f"stays at rank {before:,}"
    return f"rank {before:,} → {after:,}, {'nearer' if after < before else 'away'}"


def _distance(before: Mapping[str, Any], after: Mapping[str, Any], first: int, then: int) -> str:
    """What became of the distance from A to P, and of the samples nearer to A than P; "" for results of old."""
    if "d_ap" not in before or "d_ap" not in after or first == then:
        return ""
    was, now = before["d_ap"], after["d_ap"]
    closer = "came nearer to A" if now < was else "went away from A" if now > was else "kept its distance to A"
    others = abs(then - first)
    more = "more" if then > first else "fewer"
    nearer = f"{others:,} {more} {'samples lie' if others > 1 else 'sample lies'} nearer to A than P does"
    but = "but" if (now < was) != (then < first) else "and"
    return f"P itself {closer} ({was:.4g} → {now:.4g}), {but} {nearer}."
