"""Candidates of the variants of a study, and the choice among them by validation scores alone."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dmlcore.experiments.studies.expansion import StudyRun

Scores = Mapping[str, tuple[float, ...]]  # candidate -> best validation MAP@R in 0..1 with each choice seed


def best(scores: Scores) -> str:
    """Return the candidate with the highest mean validation score; the first one if several are equal."""
    return max(scores, key=lambda candidate: statistics.fmean(scores[candidate]))


def is_at_end(chosen: str, candidates: Iterable[str]) -> bool | None:
    """Return True if the chosen candidate has the smallest or the largest value of its list.

    Returns None if the candidates do not set one common key to numbers, so that the list has no order.
    """
    keys, values = set(), {}
    for candidate in candidates:
        key, _, value = candidate.partition("=")
        keys.add(key)
        try:
            values[candidate] = float(value)
        except ValueError:
            return None
    if len(keys) != 1:
        return None
    return values[chosen] in (min(values.values()), max(values.values()))


def collect_scores(entries: Iterable[StudyRun], validated: Mapping[str, float | None]) -> dict[str, Scores]:
    """Return the validation scores of the candidates, for each variant whose candidates have all been validated.

    Args:
        entries: Runs of the study.
        validated: Digest of a finished run -> its best validation MAP@R in 0..1, None if it has none.

    Returns:
        Variant -> scores of its candidates in the order of the study.
    """
    collected: dict[str, dict[str, list[float | None]]] = {}
    for entry in entries:
        if entry.candidate and not entry.if_chosen:
            scores = collected.setdefault(entry.variant, {}).setdefault(entry.candidate, [])
            scores.append(validated.get(entry.digest()))
    complete: dict[str, Scores] = {}
    for variant, of_variant in collected.items():
        known = {name: tuple(score for score in scores if score is not None) for name, scores in of_variant.items()}
        if all(len(known[name]) == len(scores) for name, scores in of_variant.items()):
            complete[variant] = known
    return complete


def runs_to_train(entries: Sequence[StudyRun], scores: Mapping[str, Scores]) -> list[StudyRun]:
    """Return the runs that can be trained now: those that depend on no choice, and those of chosen candidates.

    Args:
        entries: Runs of the study.
        scores: Result of `collect_scores`. Variants that are missing here have no chosen candidate yet.
    """
    chosen = {variant: best(candidates) for variant, candidates in scores.items()}
    return [entry for entry in entries if not entry.if_chosen or chosen.get(entry.variant) == entry.candidate]


def count_runs(entries: Sequence[StudyRun]) -> int:
    """Return how many runs a study trains in total, which does not depend on the candidates that are chosen."""
    dependent = {(entry.variant, entry.seed) for entry in entries if entry.if_chosen}
    return sum(not entry.if_chosen for entry in entries) + len(dependent)
