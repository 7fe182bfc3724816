"""Runs of a study: one spec for each variant, candidate, seed and fold."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from dmlcore.experiments.studies.spec import PRETRAINING, Study
from dmlcore.spec import RunSpec, SpecError
from dmlcore.storage.listing import without_name


@dataclass(frozen=True)
class StudyRun:
    """Run of a study.

    `spec` is complete, except for `model.start` if the run starts from a pretraining run with the spec `starts`.
    """

    variant: str
    seed: int
    spec: RunSpec
    starts: RunSpec | None = None  # spec of the pretraining run with the same seed
    fold: int = 0  # number of the fold, from 1; 0 if the study has no folds
    candidate: str = ""  # overrides of the candidate; "" if the variant has no candidates
    if_chosen: bool = False  # trained only if the candidate is chosen, because `seed` is not a choice seed

    def after(self, pretraining: str | None) -> RunSpec:
        """Return the spec that starts from the pretraining run with this id; the spec unchanged if it needs none."""
        if not self.starts:
            return self.spec
        return self.spec.model_copy(update={"model": self.spec.model.model_copy(update={"start": pretraining})})

    def digest(self) -> str:
        """Return the SHA-256 of all settings that determine the run, without names and the pretraining's run id."""
        return self._digest

    @cached_property
    def of_spec(self) -> str:
        """Digest of the spec without its name; the run in a store is found by this digest."""
        return without_name(self.spec).digest()

    @cached_property
    def _digest(self) -> str:
        digests = [self.of_spec, *([without_name(self.starts).digest()] if self.starts else [])]
        return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def expand(
    study: Study,
    seeds: Sequence[int] | None = None,
    only: str | Sequence[str] | None = None,
    overrides: Iterable[str] = (),
) -> list[StudyRun]:
    """Return every run of the study, seed by seed; each pretraining run precedes the runs that start from it.

    All candidates are listed for all seeds; `candidates.runs_to_train` selects the runs that are trained.

    Args:
        study: The study.
        seeds: Seeds to run; by default those of the study.
        only: One variant or several; by default all.
        overrides: Settings as key=value, applied last, also to the pretraining.

    Raises:
        SpecError: If a spec is not valid.
    """
    wanted = [only] if isinstance(only, str) else list(only or [])
    known = [variant.name for variant in study.variants]
    if unknown := [name for name in wanted if name not in known]:
        raise SpecError(f"no variant {unknown[0]!r}; the study has: {', '.join(known)}")
    last = tuple(overrides)
    chosen = [variant for variant in study.variants if not wanted or variant.name in wanted]
    entries: list[StudyRun] = []
    reported = tuple(seeds or study.seeds)
    choice = study.choice_seeds or reported
    for seed in dict.fromkeys([*(choice if any(variant.choose for variant in chosen) else ()), *reported]):
        each = study.base.data.folds
        common = [f"seed={seed // each}", f"data.fold={seed % each + 1}"] if study.rotate else [f"seed={seed}"]
        pretraining = None
        folds = range(1, study.folds + 1) if study.folds else [0]
        if study.pretraining and any(variant.start for variant in chosen):
            pretraining = _named(study, PRETRAINING, [*study.pretraining.overrides, *common, *last])
            entries.append(StudyRun(PRETRAINING, seed, pretraining))
        for variant, fold in itertools.product(chosen, folds):
            fold_lines = [f"data.folds={study.folds}", f"data.fold={fold}"] if fold else []
            starts = pretraining if variant.start else None
            for candidate in variant.choose or [()]:
                lines = [*variant.overrides, *candidate, *common, *fold_lines, *last]
                label, if_chosen = ", ".join(candidate), bool(variant.choose) and seed not in choice
                spec = _named(study, variant.name, lines)
                entries.append(StudyRun(variant.name, seed, spec, starts, fold, label, if_chosen))
    return entries


def _named(study: Study, name: str, overrides: Iterable[str]) -> RunSpec:
    spec = study.base.with_overrides(overrides)
    return spec.model_copy(update={"name": f"{study.title[:36]} · {name}"})
