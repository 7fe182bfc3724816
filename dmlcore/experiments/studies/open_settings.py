"""Settings that the source of a study leaves open, and the contrast whose dependence on them is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Field

from dmlcore.spec.plan import Text
from dmlcore.spec.sections import Section

if TYPE_CHECKING:
    from dmlcore.experiments.studies.spec import Study

Side = Annotated[
    tuple[Text, ...],
    BeforeValidator(lambda given: (given,) if isinstance(given, str) else given),
    Field(strict=False, min_length=1),
]  # several texts, or a single one


class OpenSetting(Section):
    """Setting that the source leaves open; `python -m dmlcore attribute` varies it, see `experiments.attribution`."""

    name: Text = Field(description="As in the table of attribution")
    values: Annotated[tuple[Side, ...], Field(strict=False, min_length=1, max_length=4)] = Field(
        description="Alternatives to the value of the study, each a list of overrides; the design uses the first"
    )

    def changed_keys(self) -> tuple[str, ...]:
        """Return the keys that the alternatives set, in order of appearance."""
        return tuple(dict.fromkeys(line.partition("=")[0].strip() for value in self.values for line in value))


class Attribution(Section):
    """Contrast whose dependence on open settings is measured, and these settings."""

    contrast: Text = Field(description="Statement of the contrast (`where`)")
    open: Annotated[tuple[OpenSetting, ...], Field(strict=False, min_length=1, max_length=7)]
    minutes: float = Field(gt=0, description="Total duration on one idle core, estimated from measured runs")


def refuse_wrong_attribution(study: Study) -> None:
    """Raise ValueError if the attribution of a study is not valid.

    It must name one of the contrasts, and vary no setting that is chosen among candidates of a compared variant.
    """
    attribution = study.attribution
    if attribution is None:
        return
    contrast = next((each for each in study.contrasts if each.where == attribution.contrast), None)
    if contrast is None:
        raise ValueError(
            f"attribution.contrast: there is no contrast {attribution.contrast!r}; use the `where` of one of "
            f"{[each.where for each in study.contrasts]}"
        )
    sides = [variant for variant in study.variants if variant.name in (*contrast.of, *contrast.against)]
    for setting in attribution.open:
        where = f"attribution.open.{setting.name}"
        for variant in sides:
            chosen = {line.partition("=")[0].strip() for candidate in variant.choose for line in candidate}
            if overlap := chosen.intersection(setting.changed_keys()):
                raise ValueError(
                    f"{where}: {min(overlap)} is chosen among the candidates of {variant.name!r}, so it is not open; "
                    "remove it here"
                )
        mistakes = study.wrong_overrides(
            (where, (*variant.overrides, *value)) for variant in sides for value in setting.values
        )
        if mistakes:
            raise ValueError("\n".join(dict.fromkeys(mistakes)))
