"""Scores of a study and of its baselines, by variant and seed, and the speed of convergence."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy as np

from dmlcore.experiments.studies.results import Measured, best_folds
from dmlcore.experiments.studies.spec import PRETRAINING
from dmlcore.significance import verdicts
from dmlcore.typing import Floats

CONVERGENCE = "convergence"  # score name: steps to SHARE of the own best validation MAP@R, as a share of all steps
SHARE = 0.95
BySeed = dict[str, dict[int, float]]  # variant -> seed -> score in 0..1

MEASURES = {
    "map_at_r": "test MAP@R",
    "recall_at_1": "test R@1",
    "train.map_at_r": "train MAP@R",
    "train.r_precision": "train P@R",
    "train.recall_at_1": "train R@1",
    "train.recall_at_8": "train R@8",
}


def by_seed(results: Sequence[Measured], score: str) -> BySeed:
    """Return one score by variant and seed, in order of appearance, without pretraining runs.

    If a seed has several folds, the fold with the best validation score represents it.
    """
    values: BySeed = {}
    for run in best_folds(results):
        if run.variant != PRETRAINING and (value := score_of(run, score)) is not None:
            values.setdefault(run.variant, {})[run.seed] = value
    return values


def score_of(run: Measured, score: str) -> float | None:
    """Return one score of a run, None if it has none; CONVERGENCE is computed from its validation curve."""
    if score == CONVERGENCE:
        return convergence(run.validation.step, run.validation.map_at_r)
    return run.scores.get(score)


def mean_of(values: BySeed, variants: Sequence[str]) -> dict[int, float]:
    """Return the mean over several variants for each seed that all of them have."""
    each = [values.get(name, {}) for name in variants]
    return {seed: statistics.fmean(one[seed] for one in each) for seed in each[0] if all(seed in one for one in each)}


def points(results: Sequence[Measured], score: str, judged: str, over: str = "") -> dict[str, tuple[float, float]]:
    """Return two scores of each variant that has both, as variant -> (mean of `score`, mean of `judged`).

    Args:
        results: Runs of a study.
        score: Name of the first score.
        judged: Name of the second score.
        over: Name of a score by which the first one is divided, run by run; "" for none.
    """
    scores = {name: by_seed(results, name) for name in (score, judged, *([over] if over else []))}
    means = {}
    for variant, values in scores[score].items():
        own = [scores[name].get(variant, {}) for name in scores]
        seeds = [seed for seed in values if all(seed in each for each in own) and (not over or own[-1][seed] > 0)]
        if seeds:
            first = statistics.fmean(values[seed] / (scores[over][variant][seed] if over else 1) for seed in seeds)
            means[variant] = first, statistics.fmean(scores[judged][variant][seed] for seed in seeds)
    return means


def against(results: Sequence[Measured], score: str) -> dict[str, BySeed]:
    """Return one score of the baselines as baseline -> variant -> seed -> score, named as in verdicts.NAMES."""
    baselines: dict[str, BySeed] = {name: {} for name in verdicts.NAMES}
    for run in best_folds(results):
        for name, scores in run.baselines.items():
            if run.variant != PRETRAINING and score in scores and name in baselines:
                baselines[name].setdefault(run.variant, {})[run.seed] = scores[score]
    return {name: seeds for name, seeds in baselines.items() if seeds}


def levels(results: Sequence[Measured], score: str) -> dict[str, dict[str, float]]:
    """Return one score of the baselines, averaged over the seeds, as baseline -> variant -> score."""
    return {
        name: {variant: statistics.fmean(values.values()) for variant, values in seeds.items()}
        for name, seeds in against(results, score).items()
    }


def mean_by_class(results: Sequence[Measured], variant: str) -> Floats | None:
    """Return the mean AP@R of each test class over all runs of a variant.

    None unless every run has scores by class, for the same number of classes.
    """
    per_run = [run.classes for run in results if run.variant == variant]
    return np.mean(per_run, axis=0) if per_run and per_run[0] and len(set(map(len, per_run))) == 1 else None


def convergence(steps: Sequence[int], values: Sequence[float]) -> float | None:
    """Return the steps that a run needs for 95 % of its own best validation score, as a share of its last step.

    The curve is linear between validations; the result is where it first reaches 0.95 times its maximum, so it has a
    finer resolution than the distance of two validations. A run that still improves at its last validation has not
    converged, and its result is a share of the budget only.

    Args:
        steps: Steps of the validations, ascending; the last one must be positive.
        values: Score at each of these steps, in 0..1.

    Returns:
        A number in 0..1; 0 if the initial weights already score that much. None without scores above 0.
    """
    if not values or max(values) <= 0 or steps[-1] <= 0:
        return None
    target = SHARE * max(values)
    after = next(number for number, value in enumerate(values) if value >= target)
    reached = float(steps[after])
    if after:
        rise = (target - values[after - 1]) / (values[after] - values[after - 1])
        reached = steps[after - 1] + rise * (steps[after] - steps[after - 1])
    return reached / steps[-1]
