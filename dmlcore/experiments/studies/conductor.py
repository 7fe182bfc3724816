"""Execution of studies; the state of each is stored in `.studies/NAME` of the run store. See `run_batch`."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from functools import lru_cache

from pydantic import BaseModel, ConfigDict

from dmlcore.experiments.studies.candidates import collect_scores, count_runs, runs_to_train
from dmlcore.experiments.studies.expansion import StudyRun, expand
from dmlcore.experiments.studies.run_batch import (
    PlaceState,
    Positional,
    make,
    refuse_missing_data,
    start,
    validation_scores,
)
from dmlcore.experiments.studies.spec import path_of, read
from dmlcore.jobs.backends.choice import parse
from dmlcore.storage.listing import Signature, signature
from dmlcore.storage.runs import RunError, RunStore
from dmlcore.storage.task import BUSY, Task

log = logging.getLogger(__name__)


class StudyRequest(BaseModel):
    """Request for the runs of a study: its name or file, and options that select or override settings."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    study: Positional
    overrides: tuple[Positional, ...] = ()
    seeds: tuple[int, ...] = ()
    only: tuple[str, ...] = ()

    def entries(self) -> list[StudyRun]:
        """Return the runs of the request; raise SpecError if it is not valid."""
        file = signature(str(path_of(self.study)))
        return list(_entries(self, file) if file else _entries.__wrapped__(self, file))

    def arguments(self) -> list[str]:
        """Return the command-line arguments of `python -m dmlcore study` for this request."""
        seeds = ["--seeds", ",".join(map(str, self.seeds))] if self.seeds else []
        return [self.study, *self.overrides, *seeds, *(word for name in self.only for word in ("--only", name))]


@lru_cache(maxsize=64)
def _entries(request: StudyRequest, file: Signature | None) -> tuple[StudyRun, ...]:
    """Return the runs of a request, cached because pages need them many times per view.

    `file` is the signature of the study's file and part of the cache key; None if the file is too recent to be cached.
    """
    return tuple(expand(read(request.study), request.seeds or None, request.only, request.overrides))


class StudyState(PlaceState):
    """Progress of a study."""

    request: StudyRequest


Conduct = Task[StudyState]


def conduct_of(name: str, store: RunStore) -> Conduct:
    """Return the task that conducts a study in `store`. The study is given by its name or file.

    Raises SpecError if there is no such study.
    """
    return Task(store.root / ".studies" / path_of(name).stem, StudyState)


def launch(request: StudyRequest, store: RunStore, backend: str = "") -> None:
    """Start `python -m dmlcore study` for the request as a detached process that writes to log.txt.

    Args:
        request: The request.
        store: The run store.
        backend: Backend that trains the runs.

    Raises:
        JobError: If the study is running.
        DataError: If a data set is missing.
        SpecError: If the request is not valid.
    """
    refuse_missing_data(request.entries())
    asked = StudyState(request=request, backend=parse(backend).require().text)
    start(conduct_of(request.study, store), asked, ["study", *request.arguments()])


def cancel(conduct: Conduct) -> None:
    """Stop a study and its current runs after the current step, keeping everything.

    If the process of the study is gone, its runs are cancelled directly.
    """
    state = conduct.state()
    conduct.cancel()
    # a live study process stops its runs itself
    if state is not None and state.state in BUSY and not conduct.is_alive():
        for run in state.at_work:
            with contextlib.suppress(RunError):  # deleted
                RunStore(conduct.path.parents[1]).open(run).cancel()


def conduct(
    request: StudyRequest,
    store: RunStore,
    *,
    report: Callable[[str], object] = log.info,
    stop: Callable[[], bool] = lambda: False,
    backend: str = "",
) -> StudyState:
    """Train the unfinished runs of the request and return the final state; see `run_batch.make`.

    All candidates are trained with the choice seeds first; the chosen ones are then trained with the other seeds.

    Also raises SpecError if the request is not valid.
    """
    place = conduct_of(request.study, store)
    asked = StudyState(request=request, backend=parse(backend).text)
    entries = request.entries()

    def chosen_runs() -> list[StudyRun]:
        """Return the runs of the chosen candidates with the seeds that are not choice seeds."""
        scores = collect_scores(entries, validation_scores(entries, store))
        return [entry for entry in runs_to_train(entries, scores) if entry.if_chosen]

    first, total = runs_to_train(entries, {}), count_runs(entries)
    return make(first, store, place, asked, report=report, stop=stop, further=chosen_runs, total=total)
