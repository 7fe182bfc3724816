"""Design of an attribution: the points at which both sides of a contrast are trained.

A point is a tuple with one number per open setting: 0 for the value of the study, n for its n-th alternative. There is
one point per alternative, with all other settings unchanged, and a two-level design of 4 or 8 points that combines the
first alternatives: columns of a Hadamard matrix, so that the settings are orthogonal to each other and the shares of
the variance that they explain add up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dmlcore.experiments import studies
from dmlcore.experiments.settings import settings, varying
from dmlcore.experiments.studies import Study, StudyRun
from dmlcore.experiments.studies.open_settings import Attribution
from dmlcore.experiments.studies.spec import Contrast
from dmlcore.spec import SpecError

Point = tuple[int, ...]

# Columns of the 8 x 8 Hadamard matrix in the order in which settings use them. With up to three settings all
# combinations occur; with four, no effect of one setting is confounded with an interaction of two.
COLUMNS = (1, 2, 4, 7, 3, 5, 6)


Planned = tuple[Point, StudyRun]  # run of one side of the contrast at a point, found in the run store like any other


def require(study: Study) -> Attribution:
    """Return the attribution of a study; raise SpecError if it has none."""
    if study.attribution is None:
        raise SpecError(
            f"{study.title}: no open settings are listed; add [attribution] with `contrast`, `minutes` and "
            "[[attribution.open]] to the study's file"
        )
    return study.attribution


def contrast_of(study: Study) -> Contrast:
    """Return the contrast whose dependence on open settings is measured; raise SpecError without an attribution."""
    wanted = require(study).contrast
    return next(each for each in study.contrasts if each.where == wanted)


def single_points(attribution: Attribution) -> list[Point]:
    """Return one point per alternative, in which only that setting differs from the study."""
    count = len(attribution.open)
    return [
        tuple(number if place == at else 0 for place in range(count))
        for at, setting in enumerate(attribution.open)
        for number in range(1, len(setting.values) + 1)
    ]


def design_points(count: int) -> list[Point]:
    """Return the points of the two-level design for `count` settings: 4 points up to two settings, 8 up to seven."""
    from scipy.linalg import hadamard

    matrix = hadamard(4 if count <= 2 else 8)
    return [tuple(int(matrix[row, COLUMNS[place]] < 0) for place in range(count)) for row in range(len(matrix))]


def points(attribution: Attribution) -> list[Point]:
    """Return all points without duplicates; the first is that of the study."""
    count = len(attribution.open)
    return list(dict.fromkeys([(0,) * count, *single_points(attribution), *design_points(count)]))


def overrides(attribution: Attribution, point: Point) -> tuple[str, ...]:
    """Return the overrides of a point; () for that of the study."""
    settings = zip(attribution.open, point, strict=True)
    return tuple(line for setting, number in settings if number for line in setting.values[number - 1])


def own_values(study: Study) -> list[str]:
    """Return the study's own value of each open setting, as overrides joined by commas."""
    attribution, contrast = require(study), contrast_of(study)
    variant = next(each for each in study.variants if each.name == contrast.of[0])
    spec = study.base.with_overrides(variant.overrides)
    values = settings(spec)
    own = []
    for setting in attribution.open:
        changed = settings(spec.with_overrides(setting.values[0]))
        keys = [key for key in setting.changed_keys() if key in values] or varying([values, changed])
        own.append(", ".join(f"{key}={_as_text(values.get(key))}" for key in keys))
    return own


def _as_text(value: object) -> str:
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def expand(
    study: Study, chosen: Mapping[str, str], seeds: Sequence[int] = (), extra: Sequence[str] = ()
) -> list[Planned]:
    """Return the runs of both sides at every point, pretraining included, point by point.

    Args:
        study: A study with an attribution.
        chosen: Variant -> its chosen candidate, for the variants that have candidates.
        seeds: Seeds to run; by default those of the study.
        extra: Overrides of every run, such as data.root.

    Raises:
        SpecError: If a variant with candidates is missing from `chosen`, or a spec is not valid.
    """
    attribution, contrast = require(study), contrast_of(study)
    sides = tuple(dict.fromkeys((*contrast.of, *contrast.against)))
    for variant in study.variants:
        if variant.name in sides and variant.choose and variant.name not in chosen:
            raise SpecError(
                f"{variant.name}: no candidate is chosen yet, because the study has no results; write them first with "
                "`python -m dmlcore study NAME --write`"
            )
    runs: list[Planned] = []
    for point in points(attribution):
        entries = studies.expand(study, seeds or study.seeds, sides, (*overrides(attribution, point), *extra))
        runs += [(point, entry) for entry in entries if not entry.candidate or entry.candidate == chosen[entry.variant]]
    return runs
