"""Ledger of trials: every configuration that was run for a claim, including the one that the claim quotes.

Trials of studies and of their attributions are counted from their results; trials outside studies are listed in
trials.toml.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

from pydantic import Field

from dmlcore.experiments import attribution
from dmlcore.experiments.studies.conductor import StudyRequest
from dmlcore.experiments.studies.results import Measured, best_folds, load
from dmlcore.experiments.studies.spec import PRETRAINING, names, read
from dmlcore.presets import TRIALS as FILE
from dmlcore.significance import verdicts
from dmlcore.spec import RunSpec
from dmlcore.spec.plan import Text, read_entries
from dmlcore.spec.sections import Section
from dmlcore.storage.listing import without_name
from dmlcore.storage.runs import RunStore


class Outside(Section):
    """Trials outside the studies: started by hand, run with another program, or run before the study was written."""

    what: Text = Field(description="One sentence on the tried settings and the data")
    configurations: int = Field(ge=1, description="Number of different settings")
    runs: int = Field(ge=1, description="Number of training runs")
    outcome: Text = Field(description="Outcome, including failures")


class Claim(Section):
    """A claim with its studies, the configuration that it quotes, and the trials outside these studies."""

    title: Text
    studies: tuple[str, ...] = Field(strict=False, description="Names of studies; * matches any text")
    quoted: tuple[str, str] | None = Field(None, strict=False, description="Study and variant")
    outside: tuple[Outside, ...] = Field((), strict=False)


@dataclass(frozen=True)
class Trial:
    """Configuration that was tried for a claim, with one score in 0..1 per seed.

    `measure` names the score. `runs` counts all runs, including folds that were not chosen to represent their seed.
    A rejected trial is a candidate with a lower validation score than the chosen one of its variant; `scores` are then
    validation scores.
    """

    study: str
    variant: str
    scores: tuple[float, ...]
    measure: str
    runs: int
    quoted: bool
    rejected: bool = False

    @property
    def mean(self) -> float:
        """Mean score over the seeds."""
        return statistics.fmean(self.scores)


@dataclass(frozen=True)
class TrialLedger:
    """Trials that were run for a claim.

    `trials` holds the trials in studies: the quoted one first, then from best to worst, and rejected ones last.
    `claim.outside` holds the trials outside studies.
    """

    claim: Claim
    trials: tuple[Trial, ...]

    @property
    def configurations(self) -> int:
        """Number of configurations, including those outside studies."""
        return len(self.trials) + sum(each.configurations for each in self.claim.outside)

    @property
    def runs(self) -> int:
        """Number of training runs, including those outside studies."""
        return sum(each.runs for each in self.trials) + sum(each.runs for each in self.claim.outside)

    @property
    def words(self) -> str:
        """One or two sentences on the number of trials."""
        outside = sum(each.configurations for each in self.claim.outside)
        where = f": {len(self.trials)} in studies, {outside} outside them" if outside else ""
        counted = f"{self.configurations} configurations were run for this claim, {self.runs} training runs{where}."
        if not (self.trials and self.trials[0].quoted):
            return counted
        return f"{counted} The claim quotes one of them: {self.trials[0].variant}."


@lru_cache(maxsize=1)
def claims() -> tuple[Claim, ...]:
    """Return the claims of trials.toml; raise SpecError with the reasons if the file is not valid."""
    return read_entries(FILE, "claims", Claim)


def ledger(name: str) -> TrialLedger:
    """Return the trials that were run for the claim that a study belongs to.

    If no claim names the study, the trials are its own variants. Raises SpecError if a study cannot be read.
    """
    claim, of_claim = _claim(name)
    by_settings: dict[str, Trial] = {}
    for study in of_claim:
        for key, trial in [*_trials(study, claim.quoted).items(), *_attributed(study).items()]:
            if key not in by_settings or _priority(trial) > _priority(by_settings[key]):
                by_settings[key] = trial  # if several studies share a configuration, count the one with the most seeds
    trials = sorted(by_settings.values(), key=lambda trial: (not trial.quoted, trial.rejected, -trial.mean))
    return TrialLedger(claim, tuple(trials))


def sources(name: str) -> tuple[object, ...]:
    """Return the studies and results from which the trial ledger of a study is computed.

    The objects are identical until one of their files changes, so they can serve as a cache key. Raises SpecError if a
    study cannot be read.
    """
    return tuple(source for each in _claim(name)[1] for source in (read(each), load(each), attribution.load(each)))


def _claim(name: str) -> tuple[Claim, list[str]]:
    """Return the claim that a study belongs to, and the names of all studies for this claim."""
    claim = next((c for c in claims() if any(fnmatchcase(name, pattern) for pattern in c.studies)), None)
    claim = claim or Claim(title=read(name).question, studies=(name,))
    return claim, [other for other in names() if any(fnmatchcase(other, pattern) for pattern in claim.studies)]


def count_runs(name: str, store: RunStore) -> int:
    """Return the number of training runs in this store that use the data sets of a study, for any purpose."""
    data = {entry.spec.data.name for entry in StudyRequest(study=name).entries()}
    return len(store.find(lambda run_id, brief: brief.data in data))


def _trials(name: str, quoted: tuple[str, str] | None) -> dict[str, Trial]:
    """Return the measured configurations of a study by a key that identifies their settings without seed and fold."""
    results, study = load(name), read(name)
    if results is None:
        return {}
    entries = StudyRequest(study=name, seeds=study.seeds[:1]).entries()
    keys = {(entry.variant, entry.candidate): _key(entry.spec) for entry in entries}
    by_variant: dict[str, list[Measured]] = {}
    for run in results.runs:
        if run.variant != PRETRAINING and study.judged in run.scores:
            by_variant.setdefault(run.variant, []).append(run)
    trials: dict[str, Trial] = {}
    for variant, runs in by_variant.items():
        chosen = runs[0].candidate
        trials[f"{keys.get((variant, chosen), variant)} {results.overrides}"] = Trial(
            study=name,
            variant=f"{variant}, {chosen}" if chosen else variant,
            scores=tuple(run.scores[study.judged] for run in best_folds(runs)),
            measure=study.judged,
            runs=len(runs),
            quoted=quoted == (name, variant),
        )
        for candidate, scores in runs[0].candidates.items():
            if candidate != chosen:
                trials[f"{keys.get((variant, candidate), f'{variant}, {candidate}')} {results.overrides}"] = Trial(
                    study=name,
                    variant=f"{variant}, {candidate}",
                    scores=scores,
                    measure="validation MAP@R",
                    runs=len(scores),
                    quoted=False,
                    rejected=True,
                )
    return trials


def _attributed(name: str) -> dict[str, Trial]:
    """Return the configurations of a study's attribution by the same key as `_trials`."""
    study, results = read(name), load(name)
    written = attribution.load(name) if study.attribution else None
    if study.attribution is None or written is None:
        return {}
    settings = {
        (point, entry.variant): entry.spec
        for point, entry in attribution.expand(study, written.chosen, study.seeds[:1])
    }
    scores: dict[tuple[attribution.Point, str], list[float]] = {}
    for run in written.runs:
        scores.setdefault((run.point, run.variant), []).append(run.score)
    trials = {}
    for (point, variant), values in scores.items():
        if spec := settings.get((point, variant)):  # None for a point that the study no longer has
            trials[f"{_key(spec)} {results.overrides if results else ()}"] = Trial(
                study=name,
                variant=", ".join([variant, *attribution.overrides(study.attribution, point)]),
                scores=tuple(values),
                measure=attribution.contrast_of(study).score,
                runs=len(values),
                quoted=False,
            )
    return trials


def _priority(trial: Trial) -> tuple[bool, bool, int]:
    """Return the sort key of a trial; of several trials with equal settings, the one with the largest key is listed."""
    return trial.quoted, not trial.rejected, len(trial.scores)


def _key(spec: RunSpec) -> str:
    data = spec.data.model_copy(update={"fold": 1})
    return without_name(spec.model_copy(update={"seed": 0, "data": data})).digest()


def rows(counted: TrialLedger) -> list[dict[str, str | int]]:
    """Return the ledger as table rows: the quoted configuration first, trials outside studies last."""
    table: list[dict[str, str | int]] = [
        {
            "configuration": f"{trial.variant}{' (quoted)' if trial.quoted else ''}",
            "where": read(trial.study).title,
            "runs": trial.runs,
            "result": ("not chosen, validation " if trial.rejected else "")
            + f"{verdicts.spread(*verdicts.mean_and_deviation(trial.scores))} %",
        }
        for trial in counted.trials
    ]
    return table + [
        {"configuration": each.what, "where": "outside the studies", "runs": each.runs, "result": each.outcome}
        for each in counted.claim.outside
    ]
