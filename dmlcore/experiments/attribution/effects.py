"""Effects of open settings on a contrast: the change by each alternative, and shares of the variance.

The shares are exact sums of squares of the two-level design, whose settings are orthogonal; a random forest on the runs
(`experiments.importance`) needs more than the eight points of the design for a reliable ranking.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dmlcore.experiments.attribution.design import (
    Point,
    contrast_of,
    design_points,
    own_values,
    require,
    single_points,
)
from dmlcore.experiments.attribution.results import ScoredRun
from dmlcore.experiments.studies import Study
from dmlcore.significance import verdicts
from dmlcore.significance.noise import ends
from dmlcore.significance.verdicts import Gap, Values

Contrasts = dict[Point, Values]  # point -> seed -> first side of the contrast minus the second, as a fraction
SEEDS, REST = "Seeds", "Interactions and noise"


@dataclass(frozen=True)
class Effect:
    """Change of the contrast by one alternative of a setting, all other settings unchanged.

    `contrast` holds the contrast with this alternative by seed; `change` is its paired difference from that of the
    study; `significant` is corrected for the number of alternatives.
    """

    setting: str
    own: str
    value: str
    contrast: Values
    change: Gap
    significant: bool


def contrasts(study: Study, runs: Iterable[ScoredRun]) -> Contrasts:
    """Return the contrast at each point, for the seeds for which all variants of both sides are measured."""
    asked = contrast_of(study)
    scores: dict[Point, dict[int, dict[str, float]]] = {}
    for run in runs:
        scores.setdefault(run.point, {}).setdefault(run.seed, {})[run.variant] = run.score
    every: Contrasts = {}
    for point, seeds in scores.items():
        complete = {s: by for s, by in seeds.items() if all(name in by for name in (*asked.of, *asked.against))}
        values = {
            seed: statistics.fmean(by[name] for name in asked.of) - statistics.fmean(by[name] for name in asked.against)
            for seed, by in complete.items()
        }
        if values:
            every[point] = values
    return every


def effects(study: Study, runs: Iterable[ScoredRun]) -> list[Effect]:
    """Return the effect of each alternative that is measured, in the order of the study; [] without the study's own."""
    attribution, measured = require(study), contrasts(study, runs)
    base = measured.get((0,) * len(attribution.open))
    alternatives = [point for point in single_points(attribution) if point in measured]
    if base is None:
        return []
    gaps = [verdicts.gap(measured[point], base) for point in alternatives]
    own, every = own_values(study), []
    for point, gap, sure in zip(alternatives, gaps, verdicts.clear(gaps), strict=True):
        at = next(place for place, number in enumerate(point) if number)
        setting = attribution.open[at]
        value = ", ".join(setting.values[point[at] - 1])
        every.append(Effect(setting.name, own[at], value, measured[point], gap, sure))
    return every


def shares(study: Study, runs: Iterable[ScoredRun]) -> dict[str, float]:
    """Return the share in 0..1 of the contrast's variance in the design that each setting explains alone.

    Returns:
        Setting -> share, then SEEDS (differences between seeds that all points share) and REST; they sum to 1. {} if
        the design is incomplete or the contrast is equal everywhere.
    """
    attribution, measured = require(study), contrasts(study, runs)
    design = design_points(len(attribution.open))
    if any(point not in measured for point in design):
        return {}
    seeds = sorted(set.intersection(*(set(measured[point]) for point in design)))
    rows = [[measured[point][seed] for seed in seeds] for point in design]
    every = [value for row in rows for value in row]
    mean = statistics.fmean(every) if every else 0.0
    total = sum((value - mean) ** 2 for value in every)
    if total == 0:
        return {}
    explained = {}
    for place, setting in enumerate(attribution.open):
        changed = [value for point, row in zip(design, rows, strict=True) for value in row if point[place]]
        explained[setting.name] = len(every) * (statistics.fmean(changed) - mean) ** 2 / total
    of_seeds = (statistics.fmean(column) - mean for column in zip(*rows, strict=True))
    explained[SEEDS] = len(design) * sum(difference**2 for difference in of_seeds) / total
    return explained | {REST: max(0.0, 1 - sum(explained.values()))}


def rows(study: Study, runs: Sequence[ScoredRun]) -> list[dict[str, str]]:
    """Return the table: one row per alternative, then seeds and rest; shares of the variance are in percent."""
    share = {name: f"{100 * value:.0f} %" for name, value in shares(study, runs).items()}
    table: list[dict[str, str]] = []
    for each in effects(study, runs):
        first = not any(row["setting"] == each.setting for row in table)
        table.append(
            {
                "setting": each.setting,
                "alternative": each.value,
                "change": verdicts.spread(each.change.mean, each.change.deviation, sign=True),
                "95 % interval": ends(*each.change.interval) if each.change.interval else "one seed",
                "significant": "yes" if each.significant else "no",
                # the design uses the first alternative of each setting
                "share of the variance": share.get(each.setting, "") if first else "",
                "contrast": verdicts.spread(*verdicts.mean_and_deviation(each.contrast.values()), sign=True),
                "value of the study": each.own,
            }
        )
    return table + [{"setting": name, "share of the variance": share[name]} for name in (SEEDS, REST) if name in share]


def summary(study: Study, runs: Sequence[ScoredRun]) -> str:
    """Return which setting moves the contrast most, and whether its sign is stable; "" without results."""
    every, asked, measured = effects(study, runs), contrast_of(study), contrasts(study, runs)
    if not every:
        return ""
    base = measured[(0,) * len(require(study).open)]
    sides = asked.sides or (verdicts.join_names(asked.of), verdicts.join_names(asked.against))
    start = (
        f"{sides[0]} minus {sides[1]}, {asked.title}: "
        f"{verdicts.spread(*verdicts.mean_and_deviation(base.values()), sign=True)} points with the study's settings."
    )
    return " ".join([_moved(every), start, _signs(base, measured), _explained(shares(study, runs))]).strip()


def _moved(every: Sequence[Effect]) -> str:
    """Return a sentence on the significant effects, largest first."""
    significant = sorted((each for each in every if each.significant), key=lambda each: -abs(each.change.mean))
    if not significant:
        return f"None of {len(every)} alternatives changes the contrast significantly."
    named = verdicts.join_names([f"{each.setting} ({each.value}: {each.change.words})" for each in significant])
    return f"Of {len(every)} alternatives, {len(significant)} change the contrast significantly: {named}."


def _signs(base: Values, measured: Contrasts) -> str:
    """Return a sentence on the sign of the mean contrast over all points."""
    means = [statistics.fmean(values.values()) for values in measured.values()]
    sign = statistics.fmean(base.values())
    turned = sum(mean * sign < 0 for mean in means)
    span = ends(min(means), max(means))
    return f"Over all {len(means)} points it is {span} points, with the opposite sign at {turned or 'none'}."


def _explained(share: dict[str, float]) -> str:
    """Return a sentence on the settings with the largest shares; "" without shares."""
    named = sorted(((name, value) for name, value in share.items() if name not in (SEEDS, REST)), key=lambda p: -p[1])
    if not named:
        return ""
    name, value = named[0]
    return (
        f"In the design, {name} explains {100 * value:.0f} % of the variance, seeds {100 * share[SEEDS]:.0f} %, "
        f"interactions and noise {100 * share[REST]:.0f} %."
    )
