"""Verdicts in sentences on the results of a study, given its baselines and the noise between seeds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from dmlcore.experiments.studies import promises, selection
from dmlcore.experiments.studies.by_seed import MEASURES, against, by_seed, mean_by_class, mean_of, points
from dmlcore.experiments.studies.candidates import is_at_end
from dmlcore.experiments.studies.comparisons import compare, summary
from dmlcore.experiments.studies.results import Measured, best_folds
from dmlcore.experiments.studies.spec import Study
from dmlcore.significance import verdicts
from dmlcore.significance.association import associate
from dmlcore.significance.noise import Gap, over_classes
from dmlcore.significance.power import FEASIBLE, MOST, POWER, power
from dmlcore.significance.verdicts import Verdict


def judge(study: Study, results: Sequence[Measured]) -> Verdict:
    """Return the verdict on the variants of a study; if the study asks questions, the verdict answers them."""
    judgement = _judged(study, results)
    asides = [f"{answer} {why}" for answer, why in _answers(study, results, aside=True)]
    promised = promises.summary(study, results)
    judgement = Verdict(judgement.headline, (*judgement.more, *asides, *promised, *_choice(study, results)))
    if gained := selection.summary(study, results):
        judgement = Verdict(gained[0], (*gained[1:], judgement.headline, *judgement.more))
    if not (study.rotate and judgement.headline):
        return judgement
    shared = "The folds share training classes and the whole test split: independent training runs may differ more."
    return Verdict(_of_folds(judgement.headline), (*map(_of_folds, judgement.more), shared))


def _choice(study: Study, results: Sequence[Measured]) -> list[str]:
    """Describe how the settings of the variants were chosen among candidates; [] if there are none."""
    counts = {len(run.candidates) for run in results if run.candidates}
    if not counts:
        return []
    seeds = f"seed{'s' * (len(study.choice_seeds) > 1)} {', '.join(map(str, study.choice_seeds))}"
    with_seeds = seeds if study.choice_seeds else f"all {study.repeats}"
    return [
        f"Settings: the best of {max(counts)} candidates for each of the {study.things}, chosen by MAP@R on the "
        f"validation split with {with_seeds}.",
        *_ends(results),
    ]


def _ends(results: Sequence[Measured]) -> list[str]:
    """Say how many choices lie at an end of their list of candidates, so that a longer list might score higher."""
    chosen = {run.variant: run for run in results if run.candidates}
    at_end = {name: is_at_end(run.candidate, run.candidates) for name, run in chosen.items()}
    ordered, ended = [name for name in at_end if at_end[name] is not None], [name for name in at_end if at_end[name]]
    if not ordered:
        return []
    named = f" ({verdicts.join_names(ended)}): a longer list might score higher" if ended else ""
    return [f"{len(ended) or 'None'} of {len(ordered)} choices lie at an end of their list of candidates{named}."]


def _of_folds(sentence: str) -> str:
    """Replace "seed" with "fold" in a sentence, for a study in which each seed selects a fold."""
    return re.sub(r"\bseed(s?)\b", r"fold\1", sentence)


def _judged(study: Study, results: Sequence[Measured]) -> Verdict:
    values, measure = by_seed(results, study.judged), MEASURES.get(study.judged, study.judged)
    level = values.pop(study.ceiling, None)
    baselines = against(results, study.judged)
    sentence = verdicts.verdict(values, baselines, things=study.things, measure=measure, further=not study.rotate)
    answers = [*_associations(study, results, measure), *_answers(study, results)]
    if own := summary(compare(study, results)):
        if study.of_methods:
            replies = [answer for answer, _ in answers]
            reasons = [why for _, why in answers]
            return Verdict(" ".join([*replies, own]), (*reasons, sentence.headline, *sentence.more))
        return Verdict(sentence.headline, (*sentence.more, own))
    if answers:
        # leave out the remark on the ranking, because the answers state it
        level_of = sentence.headline.removesuffix(verdicts.NO_RANKING)
        asked = {name for each in study.contrasts if not each.aside for name in (*each.of, *each.against)}
        order = sentence.more if values.keys() - asked else ()
        more = (*(why for _, why in answers), *order, *_without_starts(study, results))
        headline = " ".join(answer for answer, _ in answers)
        if level_of != sentence.headline:  # hardly a variant is above the best baseline, which no reader may miss
            counted = level_of[0].isdigit()  # after an answer, "no. 2 of 3" would read as a number
            return Verdict(f"{headline} {'Overall, ' if counted else ''}{level_of}", more)
        return Verdict(headline, (level_of, *more))
    if level and sentence.headline:
        reached = verdicts.spread(*verdicts.mean_and_deviation(level.values()))
        return Verdict(sentence.headline, (*sentence.more, f"The ceiling, {study.ceiling}, reaches {reached} %."))
    return Verdict(sentence.headline, (*sentence.more, *_without_starts(study, results)))


def _without_starts(study: Study, every: Sequence[Measured]) -> list[str]:
    """Describe the scores without folds whose training did not improve the validation score; [] without folds."""
    if not study.folds:
        return []
    still = sum(run.best_step == 0 for run in every)
    left = by_seed(best_folds(every, started=False), study.judged)
    shown = "; ".join(
        f"{name}: {verdicts.spread(*verdicts.mean_and_deviation(values.values()))} % ({len(values)} seeds)"
        for name, values in left.items()
    )
    return [
        f"In {still} of {len(every)} runs, the untrained weights have the best validation score. The scores above "
        f"include these runs. Without them: {shown or 'no run is left'}."
    ]


def _answers(study: Study, results: Sequence[Measured], *, aside: bool = False) -> list[tuple[str, str]]:
    """Return the answer to each question of a study, with the numbers that support it.

    The questions are those of the headline, or with `aside` the others; each of these groups is tested together.
    """
    known, measure = [], MEASURES.get(study.judged, study.judged)
    for asked in (each for each in study.contrasts if each.aside == aside):
        pairs = {
            title: (mean_of(scores, asked.of), mean_of(scores, asked.against))
            for title, scores in (
                (asked.title, by_seed(results, asked.score)),
                (measure, by_seed(results, study.judged)),
            )
        }
        if all(all(pair) for pair in pairs.values()):
            known.append((asked, pairs))
    answers = verdicts.contrasts([pairs[asked.title] for asked, pairs in known], [asked.lower for asked, _ in known])
    answered = []
    for (asked, pairs), answer in zip(known, answers, strict=True):
        sides = asked.sides or (verdicts.join_names(asked.of), verdicts.join_names(asked.against))
        why = "; ".join(verdicts.describe_pair(sides, pair, title) for title, pair in pairs.items())
        answered.append((f"{asked.where}: {answer}.", f"{_capital(why)}."))
    return answered


def _associations(study: Study, results: Sequence[Measured], measure: str) -> list[tuple[str, str]]:
    """Return the answer to each question on a correlation over the variants, with the numbers that support it."""
    answered = []
    for asked in study.correlations:
        known = points(results, asked.score, study.judged, asked.over)
        association = associate(*zip(*known.values(), strict=True)) if known else None
        if association:
            sign = association.sign() * (-1 if asked.falling else 1)
            answer = {1: "yes", 0: "no significant correlation", -1: "no, the opposite"}[sign]
            answered.append(
                (f"{asked.where}: {answer}.", f"{_capital(asked.title)} and {measure}: {association.words}.")
            )
    return answered


def _capital(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}"


def top(results: Sequence[Measured], score: str) -> tuple[str, ...] | None:
    """Return the best variant and all that do not differ significantly from it; None if a variant has a single seed."""
    values = by_seed(results, score)
    return verdicts.top(values) if values and min(map(len, values.values())) > 1 else None


def pair(study: Study, results: Sequence[Measured], names: tuple[str, str]) -> list[str]:
    """Describe the difference between two variants over seeds and classes, and how many seeds would detect it."""
    scores = by_seed(results, study.judged)
    values = scores[names[0]], scores[names[1]]
    gap = verdicts.gap(*values)
    if gap.p is None or gap.deviation is None:
        return [f"{_between(names, gap)} The noise is unknown. Train at least two seeds of each, preferably five."]
    sure = "significant" if verdicts.clear([gap])[0] else "not significant"
    sentences = [f"{_between(names, gap)} In a test of these two alone it is **{sure}** (p = {_p(gap.p)})."]
    if study.rotate:
        sentences = [_of_folds(sentences[0])]
    else:
        sentences.append(_enough(gap))
    by_class = [mean_by_class(results, name) for name in names]
    if study.judged == "map_at_r" and by_class[0] is not None and by_class[1] is not None:
        sentences.append(over_classes(by_class[0] - by_class[1]))
    return sentences


def _enough(gap: Gap) -> str:
    """Describe how many seeds would detect this difference; its standard deviation over the seeds must be known."""
    seen = power(gap.mean / gap.deviation, gap.count) if gap.deviation else 1.0
    takes = f"{gap.needed}" if gap.needed else f"more than {MOST:,}"
    hopeless = not gap.needed or gap.needed > FEASIBLE
    return (
        f"{'More seeds will not settle this: finding' if hopeless else 'Finding'} such a difference with a probability "
        f"of {100 * POWER:.0f} % takes {takes} seeds of each; with {gap.count} seeds it is {100 * seen:.0f} %. Few "
        "seeds estimate the noise poorly, so this is an order of magnitude."
    )


def _between(names: tuple[str, str], gap: Gap) -> str:
    return f"{names[0]} minus {names[1]}: {gap.words}."


def _p(value: float) -> str:
    return f"{value:.2g}" if value >= 0.001 else "less than 0.001"


def baseline_rows(results: Sequence[Measured]) -> list[dict[str, Any]]:
    """Return the baselines as rows in the format of `results.table`.

    Variants with equal baseline scores share a row. "seeds" counts the runs of one variant, because a baseline depends
    on the split and the seed.
    """
    scores = dict.fromkeys(key for run in results for key in run.scores)  # the scores in the table
    rows: list[dict[str, Any]] = []
    for name in verdicts.NAMES:
        by_score = {score: against(results, score).get(name, {}) for score in scores}
        variants = dict.fromkeys(variant for seeds in by_score.values() for variant in seeds)
        groups: dict[str, tuple[list[str], dict[str, Any]]] = {}
        for variant in variants:
            row = {
                score: verdicts.mean_and_deviation(seeds[variant].values())
                for score, seeds in by_score.items()
                if variant in seeds
            }
            groups.setdefault(repr(row), ([], row))[0].append(variant)
        for of_these, row in groups.values():
            whose = "" if len(of_these) == len(variants) else f" ({verdicts.join_names(of_these)})"
            seeds = len(next(seeds[of_these[0]] for seeds in by_score.values() if of_these[0] in seeds))
            rows.append({"variant": f"{verdicts.NAMES[name].removeprefix('the ')}{whose}", "seeds": seeds, **row})
    return rows
