"""Studies as frozen, validated data (TOML): a base spec, its variants, seeds, and the claim of a source."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BaseModel, Field, model_validator

from dmlcore.experiments.studies.fairness import refuse_unfair
from dmlcore.experiments.studies.open_settings import Attribution, Side, refuse_wrong_attribution
from dmlcore.presets import STUDIES
from dmlcore.significance.transductive import mark_transductive
from dmlcore.spec import SpecError
from dmlcore.spec.plan import NAME, Overrides, Plan, Text
from dmlcore.spec.run_spec import flat
from dmlcore.spec.sections import Section
from dmlcore.storage.listing import FileCache

PRETRAINING = "pretraining"  # value of a variant's `start`, and name of the runs it refers to

Seed = Annotated[int, Field(ge=0, le=2**32 - 1)]
Seeds = Annotated[tuple[Seed, ...], Field(strict=False, min_length=1)]
Candidate = Side  # overrides, or a single one


class StudyVariant(Section):
    """Variant of a study: the base spec with `overrides` applied, see `RunSpec.with_overrides`."""

    name: str = Field(min_length=1, max_length=40, pattern=r"^[\w+ .,()=-]+$", description="As in tables and legends")
    overrides: Overrides = Field((), description="key=value, applied to the base in order")
    choose: Annotated[tuple[Candidate, ...], Field(strict=False, max_length=64)] = Field(
        (), description="Candidates, each a list of overrides; the one with the best validation score is kept"
    )
    start: Literal["pretraining"] | None = Field(
        None, description='"pretraining": model.start is the pretraining run of the same seed'
    )
    against: tuple[Text, ...] = Field(
        (),
        strict=False,
        description="Baseline of this variant: another variant, or several, of which the best by validation counts",
    )


class Pretraining(Section):
    """Pretraining run that precedes the variants, once per seed: the base spec with `overrides` applied."""

    overrides: Overrides = Field(description="key=value, applied to the base in order")


class Contrast(Section):
    """Comparison of the scores of two variants, or of the mean scores of two groups of variants."""

    where: Text = Field(description="Statement to be tested, capitalised; begins the answer")
    of: Side = Field(description="Variant in question, or several, of which the mean per seed is used")
    against: Side = Field(description="Reference variant, or several")
    sides: Annotated[tuple[Text, Text] | None, Field(strict=False)] = Field(
        None, description="Names of the two sides, if a side consists of several variants"
    )
    score: Text = Field("map_at_r", description="Name of the compared score in the results")
    title: Text = Field("MAP@R", description="Displayed name of the score")
    lower: bool = Field(False, description="Lower scores are better")
    aside: bool = Field(False, description="Answer after the verdict of the study, not in its headline")


class Correlation(Section):
    """Rank correlation over the variants of a study, between one of their scores and the judged one."""

    where: Text = Field(description="Statement to be tested, capitalised; begins the answer")
    score: Text = Field(description="Name of the other score in the results, such as tested_covering.test_radius")
    title: Text = Field(description="Displayed name of the other score")
    over: str = Field("", description="Name of a score by which the other one is divided, such as a mean distance")
    falling: bool = Field(False, description="The statement says that the judged score falls as the other one rises")


class SweptSetting(Section):
    """Setting on the x axis of a line chart; variants that differ in nothing else form one line."""

    key: Text = Field(description="Dotted key of the setting, such as pooling.parameters.mu")
    title: Text = Field(description="Displayed name of the setting")


class Study(Plan):
    """A study: the question, the variants to compare, and the claim of a source that is tested."""

    tables: ClassVar[Mapping[str, type[BaseModel]]] = {
        "variants": StudyVariant,
        "pretraining": Pretraining,
        "contrasts": Contrast,
        "attribution": Attribution,
        "correlations": Correlation,
        "sweep": SweptSetting,
    }

    title: Text
    question: Text = Field(description="One sentence")
    source: Text = Field(description="Source of the study")
    claim: Text = Field(description="Claim of the source")
    remarks: tuple[Text, ...] = Field((), strict=False, description="Differences from the source, and omissions")
    minutes: float = Field(gt=0, description="Total duration on two idle cores, estimated from measured steps")
    seeds: Seeds = (0, 1, 2)
    choice_seeds: Annotated[tuple[Seed, ...], Field(strict=False)] = Field(
        (),
        description="Seeds with which all candidates are trained, not only the chosen one; default: all seeds",
    )
    rotate: bool = Field(
        False,
        description="Seeds count folds and repeats: s validates on fold s mod data.folds + 1, with seed s // folds",
    )
    folds: Literal[0, 2, 3, 4, 5, 6, 7, 8, 9, 10] = Field(
        0, description="Number of class folds per seed; the fold that validates best represents the seed"
    )
    shown: bool = Field(True, description="Show on the Studies page; if false, the trials of the study still count")
    things: Text = Field("variants", description="Kind of the variants, in the plural")
    judged: Text = Field("map_at_r", description="Score by which variants are ranked, as in the results")
    fmr: float = Field(
        0, ge=0, lt=1, description="Promised false match rate of the thresholds that are measured; 0: none is"
    )
    ceiling: str = Field("", description="Variant that is not a competitor, but an upper bound for the others")
    contrasts: tuple[Contrast, ...] = Field((), strict=False, description="Questions with an answer as a sentence")
    attribution: Attribution | None = None
    correlations: tuple[Correlation, ...] = Field((), strict=False, description="Answered over all variants")
    sweep: SweptSetting | None = None
    pretraining: Pretraining | None = None
    variants: tuple[StudyVariant, ...] = Field(strict=False, min_length=1)

    @property
    def repeats(self) -> str:
        """Plural noun for the repeats of each variant, used in tables and captions."""
        return "folds" if self.rotate else "seeds"

    @property
    def of_methods(self) -> bool:
        """True if every variant either has its own baseline or is the baseline of another variant.

        Such a study asks how each method compares with its own baseline.
        """
        baselines = {name for variant in self.variants for name in variant.against}
        return all(variant.against or variant.name in baselines for variant in self.variants)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [variant.name for variant in self.variants]
        if self.rotate and (self.folds or not self.base.data.folds):
            raise ValueError("rotate: needs base.data.folds, one of which each seed uses, and no folds of the study")
        if self.folds and self.pretraining:
            raise ValueError(
                "folds: pretraining would include the validation classes of other folds; use either folds or "
                "pretraining"
            )
        for name in names:
            if names.count(name) > 1 or name == PRETRAINING:
                raise ValueError(f"variants: the name {name!r} is taken; give each variant its own")
        for variant in self.variants:
            if variant.start and self.pretraining is None:
                raise ValueError(f"variants.{variant.name}.start: there is no [pretraining] to start from")
        asked = [(f"contrasts.{c.where}", name) for c in self.contrasts for name in (*c.of, *c.against)]
        asked += [(f"variants.{v.name}.against", name) for v in self.variants for name in v.against]
        for where, name in [*asked, *([("ceiling", self.ceiling)] if self.ceiling else [])]:
            if name not in names:
                raise ValueError(f"{where}: there is no variant {name!r}")
        for variant in self.variants:
            if variant.name in variant.against:
                raise ValueError(f"variants.{variant.name}.against: a variant cannot be its own baseline")
        for variant in self.variants:
            self._refuse_unmarked(variant)
        parts = [(f"variants.{v.name}", v.overrides) for v in self.variants]
        parts += [
            (f"variants.{v.name}.choose.{number}", (*v.overrides, *candidate))
            for v in self.variants
            for number, candidate in enumerate(v.choose, 1)
        ]
        parts += [(PRETRAINING, self.pretraining.overrides)] if self.pretraining else []
        mistakes = self.wrong_overrides(parts)
        if mistakes:
            raise ValueError("\n".join(mistakes))
        refuse_unfair(self)
        refuse_wrong_attribution(self)
        if self.sweep and not self.sweep_lines():
            raise ValueError(f"sweep.key: no two variants differ in {self.sweep.key} alone; name another setting")
        return self

    def sweep_lines(self) -> dict[str, dict[str, float]]:
        """Return the lines of the sweep: label -> variant -> value of the setting, in ascending order of the values.

        Variants without the setting, and those that share their other settings with no other variant, are left out.
        """
        groups: dict[str, dict[str, float]] = {}
        for variant in self.variants if self.sweep else ():
            settings = flat(self.base.with_overrides(variant.overrides))
            value = settings.pop(self.sweep.key, None) if self.sweep else None
            if isinstance(value, (int, float)):
                groups.setdefault(repr(settings), {})[variant.name] = float(value)
        lines = [dict(sorted(group.items(), key=lambda item: item[1])) for group in groups.values() if len(group) > 1]
        return {_label(list(line)): line for line in lines}

    def _refuse_unmarked(self, variant: StudyVariant) -> None:
        """Raise ValueError if a transductive variant lacks that word in its name; tables and charts show only names."""
        try:
            spec = self.base.with_overrides(variant.overrides)
        except SpecError:  # reported once for all variants by `wrong_overrides`
            return
        if mark_transductive(variant.name, spec.conditioning.transductive) != variant.name:
            raise ValueError(
                f"variants.{variant.name}: its scores are transductive; mark this in the name, for example "
                f"{mark_transductive(variant.name, True)!r}, or set conditioning.among=train"
            )

    @classmethod
    def from_toml(cls, text: str) -> Study:
        """Read a study from TOML text; raise SpecError if it is not valid."""
        try:
            return cls.parse(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise SpecError(f"not TOML: {error}") from None


def _label(variants: Sequence[str]) -> str:
    """Return the words that the names of some variants share, such as "C2, m … eps 5" for "C2, m 16, eps 5"."""
    words = zip(*(name.split() for name in variants), strict=False)
    return " ".join(each[0] if len(set(each)) == 1 else "…" for each in words)


def names() -> list[str]:
    """Return the names of the shipped studies and of those in the folder $DML_STUDIES."""
    return sorted(_files())


def _files() -> dict[str, Path]:
    own = os.environ.get("DML_STUDIES")
    # shipped studies take precedence over the user's studies with the same name
    return {**(_files_of(Path(own)) if own else {}), **_files_of(STUDIES)}


def _files_of(folder: Path) -> dict[str, Path]:
    return _folders.get(
        str(folder), lambda: {path.stem: path for path in folder.glob("*.toml") if NAME.fullmatch(path.stem)}
    )


def path_of(name: str) -> Path:
    """Return the file of a study, given its name or the path of a .toml file; raise SpecError if there is none."""
    if known := _files().get(name):
        return known
    path = Path(name)
    if path.suffix == ".toml" and path.is_file() and NAME.fullmatch(path.stem):
        return path
    raise SpecError(
        f"no study {name!r}; give a file STUDY.toml (lower-case letters, digits and dashes), or one of "
        f"{', '.join(names())}"
    )


def read(name: str) -> Study:
    """Read a study by its name or the path of its file; raise SpecError if it is not valid."""
    path = path_of(name)
    return _studies.get(str(path), lambda: _read(path))


_folders: FileCache[dict[str, Path]] = FileCache(4)
_studies: FileCache[Study] = FileCache(64)


def _read(path: Path) -> Study:
    try:
        return Study.from_toml(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: cannot be read: {error}") from None
    except SpecError as error:
        raise SpecError(f"{path}:\n{error}") from None
