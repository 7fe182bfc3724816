"""Gain from selection on the test split: the same runs, with step and setting chosen by validation or by test scores.

A study whose base sets `schedule.validate_test` has these scores. They are reported next to the scores of the weights
that validation selects, and they select nothing. A gain cannot be negative, because the best of several test scores is
at least the one at the step that validation selects.

Reference:
    Psomas 2020, Sec. 3.5.2.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dmlcore.experiments.studies.by_seed import by_seed
from dmlcore.experiments.studies.results import Measured
from dmlcore.experiments.studies.scores_by_test import BY_STEP, BY_STEP_AND_SETTING
from dmlcore.significance import verdicts
from dmlcore.significance.noise import Gap, Values, class_interval, ends

if TYPE_CHECKING:
    from dmlcore.experiments.studies.spec import Study

SIGNIFICANT = "significant"


@dataclass(frozen=True)
class SelectionGain:
    """Test MAP@R of one variant by the split that selects, in 0..1 by seed.

    Attributes:
        variant: Name of the variant.
        validation: Step and setting selected on the validation split.
        step: Step selected on the test split, setting on the validation split.
        step_and_setting: Step and setting selected on the test split; equal to `step` if the variant has no candidates.
        gap: `step_and_setting` minus `validation`, paired by seed.
        significant: True if the gap is significant, corrected for the number of variants.
    """

    variant: str
    validation: Values
    step: Values
    step_and_setting: Values
    gap: Gap
    significant: bool

    @property
    def differences(self) -> list[float]:
        """`step_and_setting` minus `validation` for each seed."""
        return [self.step_and_setting[seed] - self.validation[seed] for seed in self.step_and_setting]


def compare(results: Sequence[Measured]) -> list[SelectionGain]:
    """Return the gain of each variant, in order of appearance; [] unless test scores were measured at validations."""
    validated, by_step, by_setting = (by_seed(results, key) for key in ("map_at_r", BY_STEP, BY_STEP_AND_SETTING))
    by_test = by_step | by_setting
    seeds = {name: sorted(by_test[name].keys() & by_step[name].keys()) for name in by_step if name in validated}
    chosen = [(name, common) for name, common in seeds.items() if common]
    scores = [
        tuple({seed: values[name][seed] for seed in common} for values in (validated, by_step, by_test))
        for name, common in chosen
    ]
    gaps = [verdicts.gap(of_test, of_validation) for of_validation, _, of_test in scores]
    return [
        SelectionGain(name, of_validation, of_step, of_test, gap, sure)
        for (name, _), (of_validation, of_step, of_test), gap, sure in zip(
            chosen, scores, gaps, verdicts.clear(gaps), strict=True
        )
    ]


def summary(study: Study, results: Sequence[Measured]) -> list[str]:
    """Return sentences on the mean gain, its sources and the ranking, most important first; [] without such scores."""
    gains = compare(results)
    if not gains:
        return []
    common = [seed for seed in gains[0].step_and_setting if all(seed in each.step_and_setting for each in gains)]
    if not common:
        return []
    total = [statistics.fmean(each.step_and_setting[s] - each.validation[s] for each in gains) for s in common]
    of_step = [statistics.fmean(each.step[s] - each.validation[s] for each in gains) for s in common]
    surely = sum(each.significant for each in gains)
    noise = f"95 % interval {ends(*class_interval(total))}, {len(total)} {study.repeats}"
    return [
        f"Selection on the test split adds {100 * statistics.fmean(total):.1f} points of MAP@R on average over the "
        f"{len(gains)} {study.things} ({noise if len(total) > 1 else 'one seed, so the noise is unknown'}); it is "
        f"significant for {surely} of {len(gains)}.{_ranking(gains)}",
        f"Selecting only the step on the test split adds {100 * statistics.fmean(of_step):.1f} points. A gain cannot "
        "be negative, because the best of several test scores is at least the one that validation selects.",
    ]


def _ranking(gains: Sequence[SelectionGain]) -> str:
    """Return a sentence that compares the best variant under both selections, after a space; "" for one variant."""
    if len(gains) < 2:
        return ""
    first, second, lead = _ranked({each.variant: each.validation for each in gains})
    tested, _, _ = _ranked({each.variant: each.step_and_setting for each in gains})
    same = "under both selections" if first == tested else f"if validation selects, {tested} if test scores do"
    return f" {first} has the highest mean {same}; by validation, it is {100 * lead:.1f} points above {second}."


def _ranked(values: Mapping[str, Values]) -> tuple[str, str, float]:
    """Return the best variant by its mean score, the next one, and the difference of their means."""
    means = {name: statistics.fmean(scores.values()) for name, scores in values.items()}
    first, second, *_ = sorted(means, key=lambda name: -means[name])
    return first, second, means[first] - means[second]


def rows(results: Iterable[Measured]) -> list[dict[str, str]]:
    """Return one table row per variant, in percent: the scores by selection, and the gain with interval and verdict."""
    return [
        {
            "variant": each.variant,
            "by validation": verdicts.spread(*verdicts.mean_and_deviation(each.validation.values())),
            "step by test": verdicts.spread(*verdicts.mean_and_deviation(each.step.values())),
            "step and setting by test": verdicts.spread(*verdicts.mean_and_deviation(each.step_and_setting.values())),
            "difference": verdicts.spread(each.gap.mean, each.gap.deviation, sign=True),
            "95 % interval": ends(*class_interval(each.differences)) if len(each.differences) > 1 else "",
            "verdict": SIGNIFICANT if each.significant else verdicts.UNDECIDED,
        }
        for each in compare(list(results))
    ]
