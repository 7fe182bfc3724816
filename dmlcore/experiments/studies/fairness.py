"""Rules for compared variants: equally many candidates, or no default that was tuned for only some of the variants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dmlcore.spec import RunSpec

if TYPE_CHECKING:
    from dmlcore.experiments.studies.spec import Study, StudyVariant

# Prefixes of the keys that candidates may not set, because they change the budget or the evaluated data.
COMMON = ("data.", "batch.", "schedule.", "seed", "device", "processes", "ks", "name", "protocol")


def refuse_unfair(study: Study) -> None:
    """Raise ValueError for the first variant whose candidates or tuned defaults make the comparison unfair.

    All variants except the ceiling are compared with each other. The settings of the study must be valid.
    """
    compared = [variant for variant in study.variants if variant.name != study.ceiling]
    for variant in study.variants:
        _refuse_candidates(study, variant)
    first = compared[0] if compared else study.variants[0]
    for variant in compared:
        if len(variant.choose) != len(first.choose):
            raise ValueError(
                f"variants.{variant.name}.choose: has {len(variant.choose)} candidates, but {first.name!r}, with which "
                f"it is compared, has {len(first.choose)}; list the same number for all variants"
            )
    specs = {variant.name: study.base.with_overrides(variant.overrides) for variant in compared}
    if not first.choose and len({spec.loss.name for spec in specs.values()}) > 1:
        _refuse_tuned(specs)


def _refuse_candidates(study: Study, variant: StudyVariant) -> None:
    """Raise ValueError if the candidates of a variant cannot be compared by validation scores under one budget."""
    if not variant.choose:
        return
    where = f"variants.{variant.name}.choose"
    if len(variant.choose) < 2:
        raise ValueError(f"{where}: one candidate leaves no choice; list two or more, or use overrides")
    if study.folds:
        raise ValueError(f"{where}: a study with folds has no candidates; set folds to 0 or remove choose")
    schedule, data = study.base.schedule, study.base.data
    if schedule.monitor_part == "test" or data.validation == "none":
        raise ValueError(
            f"{where}: candidates are compared on the validation split; set base.data.validation, and "
            "base.schedule.monitor_part to validation"
        )
    for candidate in variant.choose:
        keys = [line.partition("=")[0].strip() for line in candidate]
        if wrong := [key for key in keys if key.startswith(COMMON)]:
            raise ValueError(f"{where}: {wrong[0]} must be equal for all candidates; set it in the base")
    specs = [study.base.with_overrides([*variant.overrides, *candidate]) for candidate in variant.choose]
    for number, spec in enumerate(specs):
        if spec in specs[:number]:
            equal = specs.index(spec) + 1
            raise ValueError(f"{where}: candidates {equal} and {number + 1} have equal settings; remove one")


def _refuse_tuned(specs: Mapping[str, RunSpec]) -> None:
    """Raise ValueError if a variant keeps a default that was tuned on other data, and another variant does not."""
    tuned = {name: tuned_defaults(spec) for name, spec in specs.items()}
    for name, defaults in tuned.items():
        for key, data in defaults.items():
            if other := next((each for each, its in tuned.items() if key not in its), None):
                loss, _, parameter = key.partition(".")
                raise ValueError(
                    f"variants.{name}: the default of loss.{parameter} of {loss} was tuned on {data}, but {other!r}, "
                    "with which it is compared, has no such setting; set the key, or give every variant the same "
                    "number of candidates (choose)"
                )


def tuned_defaults(spec: RunSpec) -> dict[str, str]:
    """Return the defaults that a spec's loss keeps although they were tuned on other data.

    Returns:
        Data set on which the source tuned the default, by "LOSS.PARAMETER", such as "distance_sensitive.m1".
    """
    from dmlcore import losses  # imports torch, which only studies that compare losses need
    from dmlcore.catalogue import Slider

    entry = losses.LOSSES.get(spec.loss.name)
    parameters = entry.parameters if entry else {}
    return {
        f"{spec.loss.name}.{name}": parameter.tuned_on
        for name, parameter in parameters.items()
        if isinstance(parameter, Slider)
        and parameter.tuned_on not in ("", spec.data.name)
        and name not in spec.loss.parameters
    }
