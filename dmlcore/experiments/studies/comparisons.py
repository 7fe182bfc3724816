"""Comparison of variants with their own baselines: the gain of each variant, by paired tests, as one table."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dmlcore.experiments.studies.by_seed import against, by_seed, mean_by_class
from dmlcore.experiments.studies.results import Measured, best_folds
from dmlcore.experiments.studies.spec import Study
from dmlcore.significance import verdicts
from dmlcore.significance.noise import Gap, Values, class_interval, ends

AHEAD, BEHIND, OPEN = "ahead", "behind", verdicts.UNDECIDED


@dataclass(frozen=True)
class ByClass:
    """Difference between two variants over the test classes.

    The first variant scores higher in `higher` of `count` classes. `interval` is the 95 % confidence interval of the
    mean difference, as a fraction.
    """

    higher: int
    count: int
    interval: tuple[float, float]


@dataclass(frozen=True)
class Gain:
    """Comparison of a variant with its own baseline.

    `scores` holds the scores of the variant and of its baseline by seed, in 0..1; `gap` is their paired difference;
    `answer` is AHEAD, BEHIND or OPEN; `classes` is None if the results hold no scores by class.
    """

    variant: str
    baseline: str
    scores: tuple[Values, Values]
    gap: Gap
    answer: str
    classes: ByClass | None


def compare(study: Study, results: Sequence[Measured]) -> list[Gain]:
    """Compare each measured variant with its own baseline, in the order of the study, correcting for multiple tests.

    If a variant has several baselines, the one with the highest mean validation score is used, so that the choice does
    not depend on test scores.
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
    """Return the best validation score of each variant, averaged over the seeds."""
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
    """Return which variants are significantly ahead or behind, and the number of others; "" if there are none."""
    if not compared:
        return ""
    ahead, behind = ([each.variant for each in compared if each.answer == answer] for answer in (AHEAD, BEHIND))
    still = len(compared) - len(ahead) - len(behind)
    return (
        f"Significantly ahead of their own baseline: {verdicts.join_names(ahead) if ahead else 'none'}. Significantly "
        f"behind it: {verdicts.join_names(behind) if behind else 'none'}. No significant difference: {still} "
        f"of {len(compared)}."
    )


def rows(study: Study, results: Sequence[Measured]) -> list[dict[str, str]]:
    """Return the table rows in percent: baselines without training, then one row per comparison; [] without
    comparisons.
    """
    compared = compare(study, results)
    if not compared:
        return []
    where = {"data": study.base.data.name}
    return [
        *(where | {"method": name, "score": level} for name, level in _untrained(results, study.judged).items()),
        *(where | _row(each) for each in compared),
    ]


def _untrained(results: Sequence[Measured], score: str) -> Mapping[str, str]:
    """Return the mean score of each baseline without training; a range if it differs between the variants."""
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
    """Format the result of `rows`, of one or several studies, as a table for the terminal."""
    heads = list(dict.fromkeys(key for row in table for key in row))
    lines = [heads, *([row.get(key, "") for key in heads] for row in table)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
