"""Variants beside their own baselines: what each gains over what it was built on, by paired tests, as one table."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dmlcore.experiments.studies.by_seed import against, by_seed, mean_by_class
from dmlcore.experiments.studies.results import Measured, best_folds
from dmlcore.experiments.studies.spec import Study
from dmlcore.significance import verdicts
from dmlcore.significance.noise import Gap, Values, class_interval, ends

AHEAD, BEHIND, OPEN = "ahead", "behind", "cannot be told"


@dataclass(frozen=True)
class ByClass:
    """A difference over the test classes: how many have a higher score, of how many, and its 95 % interval in 0..1."""

    higher: int
    count: int
    interval: tuple[float, float]


@dataclass(frozen=True)
class Gain:
    """A variant beside its own baseline: scores by seed in 0..1, the paired gap, AHEAD, BEHIND or OPEN.

    classes: None where the results hold no scores by class.
    """

    variant: str
    baseline: str
    scores: tuple[Values, Values]
    gap: Gap
    answer: str
    classes: ByClass | None


def compare(study: Study, results: Sequence[Measured]) -> list[Gain]:
    """Each measured variant that has its own baseline beside it, in the order of the study, tested together.

    Of several baselines the one with the highest mean validation score is taken: the test split chooses nothing.
    """
    values, validated = by_seed(results, study.judged), _validated(results)
    chosen = [
        (variant.name, max(variant.against, key=lambda name: validated[name]))
        for variant in study.variants
        if variant.against and all(name in values for name in (variant.name, *variant.against))
    ]
    gaps = [verdicts.gap(values[name], values[baseline]) for name, baseline in chosen]
    return [
        Gain(
            name,
            baseline,
            (values[name], values[baseline]),
            gap,
            (AHEAD if gap.mean > 0 else BEHIND) if sure else OPEN,
            _by_class(results, name, baseline) if study.judged == "map_at_r" else None,
        )
        for (name, baseline), gap, sure in zip(chosen, gaps, verdicts.clear(gaps), strict=True)
    ]


def _validated(results: Sequence[Measured]) -> dict[str, float]:
    """The mean over the seeds of the best validation score of each variant."""
    by_variant: dict[str, list[float]] = {}
    for run in best_folds(results):
        by_variant.setdefault(run.variant, []).append(run.validated or 0.0)
    return {name: statistics.fmean(scores) for name, scores in by_variant.items()}


def _by_class(results: Sequence[Measured], name: str, baseline: str) -> ByClass | None:
    first, second = mean_by_class(results, name), mean_by_class(results, baseline)
    if first is None or second is None:
        return None
    differences = (first - second).tolist()
    return ByClass(sum(each > 0 for each in differences), len(differences), class_interval(differences))


def summary(compared: Sequence[Gain]) -> str:
    """Who is clearly ahead of its own baseline, who behind, and how many cannot be told from it; "" for none."""
    if not compared:
        return ""
    ahead, behind = ([each.variant for each in compared if each.answer == answer] for answer in (AHEAD, BEHIND))
    still = len(compared) - len(ahead) - len(behind)
    return (
        f"Clearly ahead of its own baseline: {verdicts.listed(ahead) if ahead else 'none'}. Clearly behind it: "
        f"{verdicts.listed(behind) if behind else 'none'}. {still} of {len(compared)} cannot be told from theirs."
    )


def rows(study: Study, results: Sequence[Measured]) -> list[dict[str, str]]:
    """The table in per cent: what is reached without training, then a row for each comparison; [] without any."""
    compared = compare(study, results)
    if not compared:
        return []
    where = {"data": study.base.data.name}
    return [
        *(where | {"method": name, "score": level} for name, level in _untrained(results, study.judged).items()),
        *(where | _row(each) for each in compared),
    ]


def _untrained(results: Sequence[Measured], score: str) -> Mapping[str, str]:
    """Raw inputs, the network before its first step, chance: the mean of each, or from where to where it lies."""
    levels = {}
    for name, variants in against(results, score).items():
        means = [statistics.fmean(values.values()) for values in variants.values()]
        ends_of = (f"{100 * mean:.{1 if max(means) >= 0.1 else 2}f}" for mean in (min(means), max(means)))
        levels[verdicts.NAMES[name].removeprefix("the ")] = " to ".join(dict.fromkeys(ends_of))
    return levels


def _row(each: Gain) -> dict[str, str]:
    of, own = (verdicts.spread(*verdicts.mean_and_deviation(values.values())) for values in each.scores)
    row = {
        "method": each.variant,
        "score": of,
        "own baseline": each.baseline,
        "its score": own,
        "difference": verdicts.spread(each.gap.mean, each.gap.deviation, sign=True),
        "p": "" if each.gap.p is None else f"{each.gap.p:.2g}" if each.gap.p >= 0.001 else "< 0.001",
        "verdict": each.answer,
    }
    if each.classes:
        by = each.classes
        row["over the test classes"] = f"higher in {by.higher} of {by.count}, {ends(*by.interval)}"
    return row


def as_text(table: Sequence[Mapping[str, str]]) -> str:
    """`rows`, of one study or of several together, for a terminal."""
    heads = list(dict.fromkeys(key for row in table for key in row))
    lines = [heads, *([row.get(key, "") for key in heads] for row in table)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
