"""A study in the run store: `.studies/NAME` is its place, see `making`."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from functools import lru_cache

from pydantic import BaseModel, ConfigDict

from dmlcore.experiments.studies.run_batch import BatchFolder, PlaceState, detach, make, refuse_missing_data
from dmlcore.experiments.studies.spec import StudyRun, expand, path_of, read
from dmlcore.jobs import launch as jobs
from dmlcore.jobs.launch import JobError
from dmlcore.storage import locks
from dmlcore.storage.listing import Signature, signature
from dmlcore.storage.runs import RunError, RunStore

log = logging.getLogger(__name__)


class StudyRequest(BaseModel):
    """What of a study was asked for: its name or file, and what narrows or changes it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    study: str
    overrides: tuple[str, ...] = ()
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


Conduct = BatchFolder[StudyState]


def conduct_of(name: str, store: RunStore) -> Conduct:
    """Where the study of that name or file is conducted in `store`; raises SpecError if there is no such study."""
    return BatchFolder(store.root / ".studies" / path_of(name).stem, StudyState)


def launch(request: StudyRequest, store: RunStore) -> None:
    """Start `python -m dmlcore study` for the request as one detached process, with log.txt as its output.

    Raises JobError while the study is being conducted, DataError if data are missing, SpecError.
    """
    entries = request.entries()
    refuse_missing_data(entries)
    conduct = conduct_of(request.study, store)
    try:
        detach(conduct, StudyState(request=request), ["study", *request.arguments()])
    except locks.Busy:
        raise JobError(f"the study {conduct.path.name} is running already; watch it, or cancel it first") from None


def cancel(conduct: Conduct) -> None:
    """End the study and its run after the current step, keeping everything; a run that goes on alone ends too."""
    state = conduct.state()
    if state is None or state.state not in ("queued", "running"):
        return
    (conduct.path / "cancel").touch()
    try:
        with locks.ProcessLock(conduct.path / "lock", wait=0.0):  # nobody conducts it
            conduct.record(state.model_copy(update={"state": "cancelled", "message": "cancelled"}))
    except locks.Busy:
        return  # the conductor sees the request
    with contextlib.suppress(RunError):  # deleted
        jobs.cancel(RunStore(conduct.path.parents[1]).open(state.run))


def conduct(
    request: StudyRequest,
    store: RunStore,
    *,
    report: Callable[[str], object] = log.info,
    stop: Callable[[], bool] = lambda: False,
) -> StudyState:
    """Make the runs of the request that are not done, as `making.make` does; raises SpecError too."""
    place = conduct_of(request.study, store)
    return make(request.entries(), store, place, StudyState(request=request), report=report, stop=stop)
