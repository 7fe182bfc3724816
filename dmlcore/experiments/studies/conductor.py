"""A study in the run store: `.studies/NAME` is its place, see `run_batch`."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from functools import lru_cache

from pydantic import BaseModel, ConfigDict

from dmlcore.experiments.studies.run_batch import PlaceState, Positional, make, refuse_missing_data, start
from dmlcore.experiments.studies.spec import StudyRun, expand, path_of, read
from dmlcore.jobs.backends.choice import parse
from dmlcore.storage.listing import Signature, signature
from dmlcore.storage.runs import RunError, RunStore
from dmlcore.storage.task import BUSY, Task

log = logging.getLogger(__name__)


class StudyRequest(BaseModel):
    """What of a study was asked for: its name or file, and what narrows or changes it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    study: Positional
    overrides: tuple[Positional, ...] = ()
    seeds: tuple[int, ...] = ()
    only: tuple[str, ...] = ()

    def entries(self) -> list[StudyRun]:
        """Its runs; raises SpecError."""
        file = signature(str(path_of(self.study)))
        return list(_entries(self, file) if file else _entries.__wrapped__(self, file))

    def arguments(self) -> list[str]:
        """The same as arguments of `python -m dmlcore study`."""
        seeds = ["--seeds", ",".join(map(str, self.seeds))] if self.seeds else []
        return [self.study, *self.overrides, *seeds, *(word for name in self.only for word in ("--only", name))]


@lru_cache(maxsize=64)
def _entries(request: StudyRequest, file: Signature | None) -> tuple[StudyRun, ...]:
    """file: signature of the study, None where it cannot be trusted; pages ask for the same many times a look."""
    return tuple(expand(read(request.study), request.seeds or None, request.only, request.overrides))


class StudyState(PlaceState):
    """Where a study stands."""

    request: StudyRequest


Conduct = Task[StudyState]


def conduct_of(name: str, store: RunStore) -> Conduct:
    """Where the study of that name or file is conducted in `store`; raises SpecError if there is no such study."""
    return Task(store.root / ".studies" / path_of(name).stem, StudyState)


def launch(request: StudyRequest, store: RunStore, backend: str = "") -> None:
    """Start `python -m dmlcore study` for the request as one detached process, with log.txt as its output.

    backend: where its runs are made. Raises JobError while the study is being conducted, DataError if data are missing,
    SpecError.
    """
    refuse_missing_data(request.entries())
    asked = StudyState(request=request, backend=parse(backend).require().text)
    start(conduct_of(request.study, store), asked, ["study", *request.arguments()])


def cancel(conduct: Conduct) -> None:
    """End the study and its run after the current step, keeping everything; a run that goes on alone ends too."""
    state = conduct.state()
    conduct.cancel()
    if state is not None and state.state in BUSY and not conduct.is_alive():  # who conducts it ends its run
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
    """Make the runs of the request that are not done, as `run_batch.make` does; raises SpecError too."""
    place = conduct_of(request.study, store)
    asked = StudyState(request=request, backend=parse(backend).text)
    return make(request.entries(), store, place, asked, report=report, stop=stop)
