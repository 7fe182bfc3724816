"""Runs of an attribution: trained like those of a study, and their scores, stored as STUDY.attribution.jsonl."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from dmlcore.experiments import studies
from dmlcore.experiments.attribution.design import Planned, Point, contrast_of, expand
from dmlcore.experiments.studies import StudyRequest, StudyState
from dmlcore.experiments.studies.results import measure
from dmlcore.experiments.studies.run_batch import describe_machine, find, make
from dmlcore.experiments.studies.spec import PRETRAINING, path_of
from dmlcore.jobs.backends.choice import parse
from dmlcore.spec import SpecError
from dmlcore.storage import atomic_files
from dmlcore.storage.listing import FileCache
from dmlcore.storage.runs import RunStore
from dmlcore.storage.task import Task

log = logging.getLogger(__name__)


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class ScoredRun(_Stored):
    """Score in 0..1 of one side of the contrast at one point with one seed; `seconds` is the training time."""

    point: Point
    variant: str
    seed: int
    digest: str
    score: float
    seconds: float


class AttributionResults(_Stored):
    """Contents of a results file; `chosen` names the candidate of each variant that has candidates."""

    study: str
    written: str  # date
    torch: str
    machine: str
    chosen: dict[str, str] = {}
    runs: tuple[ScoredRun, ...]

    @property
    def seconds(self) -> float:
        """Training time of all runs."""
        return sum(run.seconds for run in self.runs)


def entries(request: StudyRequest, store: RunStore) -> list[Planned]:
    """Return the runs of a study's attribution; candidates are those that the study has chosen.

    They are taken from the finished runs of the store, otherwise from the written results. Raises SpecError.
    """
    own = studies.measured(request.entries(), store)
    written = studies.load(request.study)
    chosen = {run.variant: run.candidate for run in [*(written.runs if written else ()), *own] if run.candidate}
    return expand(studies.read(request.study), chosen, request.seeds, request.overrides)


def conduct(
    request: StudyRequest,
    store: RunStore,
    *,
    report: Callable[[str], object] = log.info,
    stop: Callable[[], bool] = lambda: False,
    backend: str = "",
) -> StudyState:
    """Train the unfinished runs of an attribution and return the final state; see `run_batch.make`.

    Also raises SpecError if the study has no attribution, or has chosen no candidates yet.
    """
    task = Task(store.root / ".attributions" / path_of(request.study).stem, StudyState)
    unique = {entry.digest(): entry for _, entry in entries(request, store)}
    return make(
        list(unique.values()), store, task, StudyState(request=request, backend=parse(backend).text),
        report=report, stop=stop,
    )  # fmt: skip


def measured(request: StudyRequest, store: RunStore) -> list[ScoredRun]:
    """Return the scores of the finished runs, in the order of the design."""
    score = contrast_of(studies.read(request.study)).score
    planned = entries(request, store)
    scored = []
    for (point, entry), run in zip(planned, find([entry for _, entry in planned], store), strict=True):
        result = measure(entry, run) if run and entry.variant != PRETRAINING else None
        if result and score in result.scores:
            scored.append(
                ScoredRun(
                    point=point,
                    variant=entry.variant,
                    seed=entry.seed,
                    digest=result.digest,
                    score=result.scores[score],
                    seconds=result.seconds,
                )
            )
    return scored


def results_path(name: str) -> Path:
    """Return the path of the results of a study's attribution, next to the study's file."""
    return path_of(name).with_suffix(".attribution.jsonl")


def write(request: StudyRequest, store: RunStore) -> Path:
    """Write the scores of the finished runs next to the study and return the path; SpecError if there are none."""
    runs = measured(request, store)
    if not runs:
        raise SpecError(f"{request.study}: no finished run of its attribution in {store.root}, so nothing was written")
    planned = [entry for _, entry in entries(request, store)]
    head = AttributionResults(
        study=path_of(request.study).stem,
        written=time.strftime("%Y-%m-%d", time.gmtime()),
        **describe_machine([run for run in find(planned, store) if run]),
        chosen={entry.variant: entry.candidate for entry in planned if entry.candidate},
        runs=(),
    )
    lines = [head.model_dump(mode="json", exclude={"runs"}), *(run.model_dump(mode="json") for run in runs)]
    text = "".join(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n" for line in lines)
    path = results_path(request.study)
    atomic_files.replace(path, lambda file: file.write(text.encode()))
    return path


def load(name: str) -> AttributionResults | None:
    """Return the written results, or None if there are none; raise SpecError if the file is damaged."""
    path = results_path(name)
    return _loaded.get(str(path), lambda: _load(path))


_loaded: FileCache[AttributionResults | None] = FileCache(16)


def _load(path: Path) -> AttributionResults | None:
    try:
        head, *runs = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line] or [{}]
        return AttributionResults.model_validate({**head, "runs": runs})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, ValidationError) as error:
        raise SpecError(f"{path.name} cannot be read; write it again with --write: {error}") from None
