"""What the results of a study say in words, beside their baselines and their noise."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from dmlcore import verdicts
from dmlcore.studies.results import Measured
from dmlcore.studies.spec import PRETRAINING, Study
from dmlcore.verdicts import Verdict

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
    """A score of each variant by seed, in order of appearance; the pretraining is no variant."""
    found: BySeed = {}
    for run in results:
        if run.variant != PRETRAINING and score in run.scores:
            found.setdefault(run.variant, {})[run.seed] = run.scores[score]
    return found


def against(results: Sequence[Measured], score: str) -> dict[str, BySeed]:
    """The same score of the baselines of each variant: baseline, as in verdicts.NAMES -> variant -> seed -> score."""
    found: dict[str, BySeed] = {name: {} for name in verdicts.NAMES}
    for run in results:
        for name, scores in run.baselines.items():
            if run.variant != PRETRAINING and score in scores and name in found:
                found[name].setdefault(run.variant, {})[run.seed] = scores[score]
    return {name: of for name, of in found.items() if of}


def judge(study: Study, results: Sequence[Measured]) -> Verdict:
    """The verdict on the variants of a study by the score it judges by; where it asks questions, their answers."""
    values, measure = by_seed(results, study.judged), MEASURES.get(study.judged, study.judged)
    level = values.pop(study.ceiling, None)
    found = verdicts.verdict(values, against(results, study.judged), things=study.things, measure=measure)
    if answers := _answers(study, results, measure):
        return Verdict(" ".join(answer for answer, _ in answers), (*(why for _, why in answers), found.headline))
    if level and found.headline:
        reached = verdicts.spread(*verdicts.mean_and_deviation(level.values()))
        return Verdict(found.headline, (*found.more, f"The ceiling, {study.ceiling}, reaches {reached} %."))
    return found


def _answers(study: Study, results: Sequence[Measured], measure: str) -> list[tuple[str, str]]:
    """The answer to each question of a study, and the numbers behind it."""
    found = []
    for asked in study.contrasts:
        names = asked.of, asked.against
        pairs = {
            title: (of.get(asked.of, {}), of.get(asked.against, {}))
            for title, of in ((asked.title, by_seed(results, asked.score)), (measure, by_seed(results, study.judged)))
        }
        if all(all(pair) for pair in pairs.values()):
            answer = verdicts.contrast(pairs[asked.title], lower=asked.lower)
            why = "; ".join(verdicts.beside(names, pair, title) for title, pair in pairs.items())
            found.append((f"{asked.where}: {answer}.", f"{asked.where}: {why}."))
    return found


def levels(results: Sequence[Measured], score: str) -> dict[str, dict[str, float]]:
    """The mean over the seeds of each baseline beside each variant."""
    return {
        name: {variant: statistics.fmean(values.values()) for variant, values in of.items()}
        for name, of in against(results, score).items()
    }


def baseline_rows(results: Sequence[Measured]) -> list[dict[str, Any]]:
    """The baselines as rows of `table`, each once: of all variants together where they share it, else of each.

    "seeds" counts the runs of one variant, as a baseline is that of the same split and seed.
    """
    scores = dict.fromkeys(key for run in results for key in run.scores)  # what the table has
    rows: list[dict[str, Any]] = []
    for name in verdicts.NAMES:
        found = {score: against(results, score).get(name, {}) for score in scores}
        variants = dict.fromkeys(variant for of in found.values() for variant in of)
        groups: dict[str, tuple[list[str], dict[str, Any]]] = {}
        for variant in variants:
            row = {
                score: verdicts.mean_and_deviation(of[variant].values()) for score, of in found.items() if variant in of
            }
            groups.setdefault(repr(row), ([], row))[0].append(variant)
        for of_these, row in groups.values():
            whose = "" if len(of_these) == len(variants) else f" ({verdicts.listed(of_these)})"
            seeds = len(next(of[of_these[0]] for of in found.values() if of_these[0] in of))
            rows.append({"variant": f"{verdicts.NAMES[name].removeprefix('the ')}{whose}", "seeds": seeds, **row})
    return rows
