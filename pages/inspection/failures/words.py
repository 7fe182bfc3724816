"""Sentences on which losses rank a query best, and on the difference between a free step and a true step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dmlcore import losses
from dmlcore.inspection.failure.best_loss import BestLoss
from dmlcore.inspection.failure.one_step import NeighbourRanks
from dmlcore.spec.optimisers import OPTIMISERS
from dmlcore.spec.sections import OptimiserSpec
from pages.shared.words.labels import WORDS
from pages.shared.words.numbers import unbroken

LEFT_OUT = 3  # if at most this many losses are not tied for best, the sentence names these instead of the tied losses
ON = "AP@R and the rank of P"  # scores that compare losses, see best_loss.JUDGES
JUDGED = (
    "Losses are compared by AP@R, then by the rank of P. Results tie if they differ by less than 10 % of the largest "
    "improvement, one point of AP@R or one rank."
)


def verdict(best: BestLoss, before: NeighbourRanks, after: Mapping[str, NeighbourRanks]) -> str:
    """Return one sentence that names the losses that rank a query best, marks ties, and states the changes.

    Args:
        best: The result of `best_loss` for `before` and `after`.
        before: The ranks before the step.
        after: The ranks after the step of each loss, by name.
    """
    if best.gain < 0:
        return "No loss improves this query: every step ranks it lower."
    if best.gain == 0:
        return "No loss changes this ranking noticeably."
    first, then = f"{100 * before.average_precision:.1f}", [after[name] for name in best.names]
    changes = (
        f"AP@R {_change(first, [f'{100 * each.average_precision:.1f}' for each in _by(then, 'average_precision')])} %",
        f"rank of P {_change(f'{before.right:,}', [f'{each.right:,}' for each in _by(then, 'right')])}",
        f"rank of N {_change(f'{before.wrong:,}', [f'{each.wrong:,}' for each in _by(then, 'wrong')])}",
    )
    return unbroken(f"{_named(best.names, list(after))}. {', '.join(changes)}.")


def _named(best: Sequence[str], compared: Sequence[str]) -> str:
    """Return the start of the verdict: the best loss or, for a tie, the losses that tie or the few that do not."""
    if len(compared) == 1:
        return f"With {_titles(best)}"
    if len(best) == 1:
        return f"Largest improvement: {_titles(best)}"
    behind = [name for name in compared if name not in best]
    if not behind:
        return f"All {len(best)} losses tie on {ON}"
    if len(behind) <= min(LEFT_OUT, len(best) - 1):
        return f"{len(best)} of {len(compared)} losses tie on {ON}, all but {_titles(behind)}"
    return f"{len(best)} of {len(compared)} losses tie on {ON}: {_titles(best)}"


def _titles(names: Sequence[str]) -> str:
    *others, last = (losses.describe(name).title for name in names)
    return f"{', '.join(others)} and {last}" if others else last


def _by(standings: Sequence[NeighbourRanks], figure: str) -> list[NeighbourRanks]:
    """Return the two ranks with the lowest and the highest value of the attribute `figure`."""
    return [pick(standings, key=lambda each: getattr(each, figure)) for pick in (min, max)]


def _change(before: str, ends: Sequence[str]) -> str:
    """Return the change from one value to a range of values, all given as text, such as "3 → 1–2"."""
    after = "–".join(dict.fromkeys(ends))
    return f"stays at {after}" if after == before else f"{before} → {after}"


def held_equal(optimiser: OptimiserSpec) -> str:
    """Return a text that states what the true steps of all losses share, and if the size of the gradient matters."""
    equal = f"Equal for all losses: weights, triplet, learning rate {optimiser.learning_rate:g}."
    if OPTIMISERS[optimiser.name].scale_free:
        return f"{equal} The first step of this optimiser does not depend on the size of the gradient."
    return f"{equal} With this optimiser, a larger gradient takes a longer step."


def price(before: float | None, after: float | None) -> str:
    """Return a sentence on the change in MAP@R over all queries; "" if a value is unknown."""
    if before is None or after is None:
        return ""
    first, then = (f"{100 * each:.2f}" for each in (before, after))
    if first == then:
        return unbroken(f"MAP@R of all queries stays at {then} %.")
    change = unbroken(f"MAP@R of all queries {first} → {then} %")
    if after > before:
        return f"{change}: other queries gain, too."
    return f"{change}: other queries lose, because the step serves a single triplet."


def why(name: str, before: Mapping[str, Any], after: Mapping[str, Any], free: NeighbourRanks, by: OptimiserSpec) -> str:
    """Return sentences on how the free and the true step of a loss change the rank of P, and why they may differ.

    Args:
        before, after: Results of `true_step.read`.
        free: The ranks after the free step of the same loss.
        by: The optimiser of the true step.
    """
    title = losses.describe(name).title
    if not after["active"]:
        return f"{title} has no force on this triplet: neither step moves anything."
    first, freely, truly = int(before["right"]), free.right, int(after["right"])
    steps = f"Right P with {title}: {_move(first, freely)} by the free step, {_move(first, truly)} by the true one."
    agree = (first > freely) == (first > truly) and (first < freely) == (first < truly)
    rule = WORDS.get(by.name, by.name)
    even = (
        f" The first step of {rule} moves each weight by about the same amount, regardless of its gradient."
        if OPTIMISERS[by.name].scale_free
        else ""
    )
    differ = (
        f"The free step moves only A, P and N, along their forces. The true step is one step of {rule} at learning "
        f"rate {by.learning_rate:g} on weights that all samples share, so every embedding moves.{even}"
    )
    verdict = "They agree in direction, but not necessarily in distance." if agree else "They disagree."
    return " ".join(filter(None, (steps, verdict, differ, _distance(before, after, first, truly))))


def _move(before: int, after: int) -> str:
    if before == after:
        return f"stays at rank {before:,}"
    return f"rank {before:,} → {after:,}, {'nearer' if after < before else 'away'}"


def _distance(before: Mapping[str, Any], after: Mapping[str, Any], first: int, then: int) -> str:
    """Return a sentence on the change of d(A,P) and of the number of nearer samples; "" if d(A,P) was not recorded."""
    if "d_ap" not in before or "d_ap" not in after or first == then:
        return ""
    was, now = before["d_ap"], after["d_ap"]
    closer = "came nearer to A" if now < was else "went away from A" if now > was else "kept its distance to A"
    others = abs(then - first)
    more = "more" if then > first else "fewer"
    nearer = f"{others:,} {more} {'samples lie' if others > 1 else 'sample lies'} nearer to A than P does"
    but = "but" if (now < was) != (then < first) else "and"
    return f"P itself {closer} ({was:.4g} → {now:.4g}), {but} {nearer}."
