"""What the results of a study say in words, beside their baselines and their noise."""

from __future__ import annotations

from collections.abc import Sequence

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
    """The verdict on the variants of a study by the score it judges by; answers to its questions come first."""
    values, measure = by_seed(results, study.judged), MEASURES.get(study.judged, study.judged)
    level = values.pop(study.ceiling, None)
    found = verdicts.verdict(values, against(results, study.judged), things=study.things, measure=measure)
    answers = []
    for asked in study.contrasts:
        of = by_seed(results, asked.score)
        names, pair = (asked.of, asked.against), (of.get(asked.of, {}), of.get(asked.against, {}))
        answers.append(verdicts.contrast(asked.where, names, pair, asked.title, lower=asked.lower))
        judged = values.get(asked.of, {}), values.get(asked.against, {})
        if asked.score != study.judged and all(judged):
            answers.append(f"{verdicts.beside(names, judged, measure)}.")
    if level and found.headline:
        reached = verdicts.spread(*verdicts.mean_and_deviation(level.values()))
        found = Verdict(found.headline, (*found.more, f"The ceiling, {study.ceiling}, reaches {reached} %."))
    sentences = [*(answer for answer in answers if answer), found.headline, *found.more]
    return Verdict(sentences[0], tuple(sentences[1:]))
