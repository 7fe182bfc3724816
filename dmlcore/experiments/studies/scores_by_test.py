"""Test scores of the validated steps of a run, and of the candidates of a variant, for `selection`."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from dmlcore.storage.metrics_rows import Row
from dmlcore.storage.runs import candidate_validations

if TYPE_CHECKING:
    from dmlcore.experiments.studies.results import Measured

BY_STEP = "selection.step"  # score name: test MAP@R if the step is selected on the test split
BY_STEP_AND_SETTING = "selection.both"  # the same if the candidate is selected on the test split as well


def best_step(rows: Iterable[Row]) -> dict[str, float]:
    """Return the best test MAP@R over the validated steps as {BY_STEP: score}; {} if the test split was not scored."""
    scores = [row.get("test_map_at_r") for row in candidate_validations(rows)]
    return {BY_STEP: max(known)} if (known := [score for score in scores if score is not None]) else {}


def best_settings(runs: Iterable[Measured]) -> Mapping[tuple[str, int], dict[str, float]]:
    """Return {BY_STEP_AND_SETTING: score} of the candidate with the best mean test score, by variant and seed.

    The mean is over the seeds with which all candidates of a variant were trained; only these seeds have a score.
    """
    by_variant: dict[str, dict[str, dict[int, float]]] = {}
    for run in runs:
        if run.candidate and BY_STEP in run.scores:
            by_variant.setdefault(run.variant, {}).setdefault(run.candidate, {})[run.seed] = run.scores[BY_STEP]
    best: dict[tuple[str, int], dict[str, float]] = {}
    for variant, candidates in by_variant.items():
        seeds = set.intersection(*(set(scores) for scores in candidates.values()))
        if seeds:
            chosen = max(candidates.values(), key=lambda scores: statistics.fmean(scores[seed] for seed in seeds))
            best |= {(variant, seed): {BY_STEP_AND_SETTING: chosen[seed]} for seed in seeds}
    return best
