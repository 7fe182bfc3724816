"""After a crash of the machine: what was running or queued goes on, each once, whoever asks and however often.

Whatever should be at work, and is not, is found where it is written down: states of runs, places of studies and
protocols, `.queue/asked`. Each is taken under its lock, and marked as queued now before its process starts, so that of
two recoveries one does it. A search is not begun again, as its command holds what it looks for; its runs are.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dmlcore.data import DataError
from dmlcore.experiments.protocols.requests import ProtocolState
from dmlcore.experiments.studies.conductor import StudyState
from dmlcore.experiments.studies.run_batch import BatchFolder, detach
from dmlcore.jobs import launch
from dmlcore.spec import SpecError
from dmlcore.storage import locks
from dmlcore.storage.runs import Run, RunError, RunStore

LOOK = 0.1  # seconds between two looks at what starts
log = logging.getLogger(__name__)


def recover(store: RunStore, report: Callable[[str], object] = log.info) -> list[str]:
    """Resume what was interrupted in a store, trainings that were at work first; names of what was resumed.

    The runs of an interrupted study are left to its process. What cannot be resumed is reported and left as it is.
    """
    conducted: list[str] = []
    taken: set[str] = set()
    for place in _places(store):
        state = place.state()
        if state is None or place.status() != "lost":
            if state is not None and place.busy():
                taken.add(state.run)
            continue
        try:
            kind = "study" if isinstance(state, StudyState) else "protocol"
            detach(place, state, [kind, *state.request.arguments()])
        except (locks.Busy, DataError, SpecError, OSError) as error:
            report(f"{place.path.name}: {error or 'somebody is at it already'}")
            continue
        taken.add(state.run)
        conducted.append(place.path.name)
        report(f"{kind} {place.path.name}: goes on")
    runs = _each(_interrupted(store), lambda run: False if run.id in taken else _resume(run, report))
    return [*conducted, *runs, *_each(launch.all_asked(store), lambda run: _ask_again(run, report))]


def _each(runs: Sequence[Run], begin: Callable[[Run], bool | None]) -> list[str]:
    """Ids of those that were begun; None of `begin`: a process may be on its way, so ask again a little later.

    As many start at once as there are cores: all together would keep each other from their locks.
    """
    begun: list[str] = []
    starting: list[Run] = []
    waiting = list(runs)
    while waiting:
        again = []
        for run in waiting:
            answer = begin(run)
            if answer is None:
                again.append(run)
            elif answer:
                begun.append(run.id)
                starting.append(run)
            while len(starting := [other for other in starting if _coming(other)]) >= len(os.sched_getaffinity(0)):
                time.sleep(LOOK)
        waiting = again
        if waiting:
            time.sleep(LOOK)
    return begun


def _coming(run: Run) -> bool:
    """Whether a process was started for a run and does not hold its lock yet."""
    known = launch.asked(run)
    return not run.alive() and (run.status() == "queued" or (known is not None and known.on_its_way()))


def _places(store: RunStore) -> Iterator[BatchFolder[Any]]:
    """Where studies and protocols are conducted."""
    for folder, kind in ((".studies", StudyState), (".protocols", ProtocolState)):
        for path in sorted((store.root / folder).glob("*/state.json")):
            yield BatchFolder(path.parent, kind)


def _interrupted(store: RunStore) -> list[Run]:
    """Runs that should be at work or wait, those that were at work first, the others in the order of their queue."""
    found: list[tuple[bool, float, float, Run]] = []
    for run in store.find(lambda run_id, brief: True, state=("queued", "running")):
        try:
            state = run.state()
        except RunError:  # deleted this very moment
            continue
        found.append((state.state == "queued", state.queued, state.created, run))
    return [run for *_, run in sorted(found, key=lambda item: item[:3])]


def _resume(run: Run, report: Callable[[str], object]) -> bool | None:
    """Put a run back in the queue and start its process, unless there is one or it was to be cancelled."""
    try:
        if (state := run.state()).on_its_way() and not run.alive():  # without the lock, which its process wants
            return None
        with run.lock(wait=0.0):
            state = run.state()
            if state.on_its_way():
                return None
            if state.state not in ("queued", "running"):
                return False
            if run.cancel_requested():
                run.update(state="cancelled", message="cancelled")
                return False
            launch.prepare_resume(run)
            launch.start(run, "train")
    except locks.Busy:  # alive, or another recovery has it
        return False
    except (RunError, launch.JobError, OSError) as error:
        report(f"{run.id}: {error}")
        return False
    report(f"{run.id}: goes on from step {state.step:,} of {state.steps:,}")
    return True


def _ask_again(run: Run, report: Callable[[str], object]) -> bool | None:
    """Start an interrupted job on a run again."""
    try:
        if (known := launch.asked(run)) and known.on_its_way() and not run.alive():
            return None
        with run.lock(wait=0.0):
            known = launch.asked(run)
            if known and known.on_its_way():
                return None
            if known is None or run.state().state in ("queued", "running"):
                return False
            launch.begin(run, known)
    except locks.Busy:
        return False
    except (RunError, OSError) as error:
        report(f"{run.id}: {error}")
        return False
    report(f"{run.id}: {known.task} again")
    return True
