"""Recovery after a crash of the machine: interrupted and queued tasks are resumed, each exactly once.

Interrupted tasks are found through their files: states of runs, folders of studies and protocols, and `.queue/asked`.
Each task is locked and marked as queued before its process starts, so that only one of two concurrent recoveries starts
it. A search is not restarted, because only its command line holds its definition; the runs of a search are.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from dmlcore.data import DataError
from dmlcore.experiments.protocols.requests import ProtocolState
from dmlcore.experiments.studies.conductor import StudyState
from dmlcore.experiments.studies.run_batch import start
from dmlcore.jobs import launch
from dmlcore.jobs.backends import choice
from dmlcore.jobs.launch import Job, JobState
from dmlcore.spec import SpecError, own_network
from dmlcore.storage import locks
from dmlcore.storage.runs import Run, RunError, RunStore
from dmlcore.storage.task import BUSY, JobError, Task

LOOK = 0.1  # seconds between two checks for processes that have not acquired their lock yet
log = logging.getLogger(__name__)


def recover(store: RunStore, report: Callable[[str], object] = log.info, backends: Sequence[str] = ()) -> list[str]:
    """Resume the interrupted tasks of a store and return their names.

    Training runs that were running are resumed first. The runs of an interrupted study are left to the process of the
    study. Tasks that cannot be resumed are reported and not changed.

    Args:
        store: The store.
        report: Called with one sentence for each task.
        backends: Backends on which tasks that used them may continue, in addition to those of $DML_BACKENDS. All other
            tasks continue on this machine: a store may have come from somebody else, and must not name the machines to
            connect to.
    """
    conducted: list[str] = []
    taken: set[str] = set()
    for place in _study_tasks(store):
        state = place.state()
        if state is None or place.status() != "lost":
            if state is not None and place.is_busy():
                taken.update(state.at_work)
            continue
        try:
            kind = "study" if isinstance(state, StudyState) else "protocol"
            backend, refused = choice.resolve_recorded(state.backend, backends)
            if refused:
                report(f"{place.path.name}: continues {refused}")
            state = state.replace(backend=backend)
            start(place, state, [kind, *state.request.arguments()])
        except (JobError, DataError, SpecError, OSError) as error:
            report(f"{place.path.name}: {error}")
            continue
        taken.update(state.at_work)
        conducted.append(place.path.name)
        report(f"{kind} {place.path.name}: goes on")
    runs = _start_all(_interrupted(store), lambda run: False if run.id in taken else _resume(run, report, backends))
    jobs = _start_all(launch.pending_jobs(store), lambda job: _requeue(job, job.start_worker, report, backends))
    for path in sorted((store.root / launch.REQUESTS).glob("*.json")):
        if Job(Run(store.root / path.stem)).state() is None:
            report(f"{path.stem}: {path} is not a job request and is ignored")
    return [*conducted, *runs, *jobs]


T = TypeVar("T", Run, Job)


def _start_all(tasks: Sequence[T], begin: Callable[[T], bool | None]) -> list[str]:
    """Start tasks and return the names of those that started; if `begin` returns None, try that task again later.

    At most one task per CPU core is starting at a time, because more would delay each other's acquisition of locks.
    """
    begun: list[str] = []
    starting: list[T] = []
    waiting = list(tasks)
    while waiting:
        again = []
        for task in waiting:
            answer = begin(task)
            if answer is None:
                again.append(task)
            elif answer:
                begun.append(task.path.name)
                starting.append(task)
            while len(starting := [other for other in starting if _is_starting(other)]) >= len(os.sched_getaffinity(0)):
                time.sleep(LOOK)
        waiting = again
        if waiting:
            time.sleep(LOOK)
    return begun


def _is_starting(task: Run | Job) -> bool:
    """Return True if the task's process was started, but does not hold the task's lock yet."""
    return not task.is_alive() and task.status() == "queued"


def _study_tasks(store: RunStore) -> Iterator[Task[Any]]:
    """Yield the tasks of all studies and protocols in the store."""
    for folder, kind in ((".studies", StudyState), (".protocols", ProtocolState)):
        for path in sorted((store.root / folder).glob("*/state.json")):
            yield Task(path.parent, kind)


def _interrupted(store: RunStore) -> list[Run]:
    """Return interrupted runs: first those that were running, then the queued ones in the order of their queueing."""
    interrupted: list[tuple[bool, float, float, Run]] = []
    for run in store.find(lambda run_id, brief: True, state=("queued", "running")):
        try:
            state = run.state()
            if run.is_embedding_set:  # only the program that trains it can continue it
                continue
        except RunError:  # deleted at this moment
            continue
        interrupted.append((state.state == "queued", state.queued, state.created, run))
    return [run for *_, run in sorted(interrupted, key=lambda item: item[:3])]


def _resume(run: Run, report: Callable[[str], object], backends: Sequence[str] = ()) -> bool | None:
    """Resume a training run; see `_requeue` for the return value."""
    if reason := own_network.refusal(run.spec.model.name):
        report(f"{run.id}: {reason}")
        return False
    return _requeue(
        run,
        lambda: launch.start_process(run, "train", *launch.backend_arguments(run.state().backend)),
        report,
        backends,
    )


def _requeue(
    task: Task[Any], begin: Callable[[], object], report: Callable[[str], object], backends: Sequence[str]
) -> bool | None:
    """Queue an interrupted task again and start its process; return True if it was started.

    Returns False if the task has a process, is not interrupted, has a pending cancellation request or cannot be
    started, and None if a process may already be starting.
    """
    name = task.path.name
    try:
        # Do not take the lock here, because the starting process needs it.
        if (state := task.state()) and state.is_starting() and not task.is_alive():
            return None
        with task.lock(wait=0.0):
            state = task.state()
            if state and state.is_starting():
                return None
            if state is None or state.state not in BUSY or (isinstance(task, Job) and task.run.is_busy()):
                return False
            if task.cancel_requested():
                task.record(state.replace(state="cancelled", message="cancelled"))
                return False
            done = "" if isinstance(state, JobState) else f" from step {state.step:,} of {state.steps:,}"
            backend, refused = choice.resolve_recorded(state.backend, backends)
            task.queue(state.replace(backend=backend))
            begin()
    except locks.Busy:  # the task has a process, or another recovery is starting one
        return False
    except (RunError, OSError) as error:
        report(f"{name}: {error}")
        return False
    report(f"{name}: resumes{done}{refused and ', '}{refused}")
    return True
