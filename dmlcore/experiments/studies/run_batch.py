"""Runs one after another, found by what they are: what studies, protocols and searches have in common.

A place is the folder of a task in the run store, whose state holds what was asked for. Its runs are ordinary runs of
the store, found by their spec.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from dmlcore import data
from dmlcore.experiments.studies.spec import PRETRAINING, StudyRun
from dmlcore.inspection.local import weight_maps
from dmlcore.jobs import launch
from dmlcore.spec import RunSpec
from dmlcore.storage.listing import nameless
from dmlcore.storage.runs import Run, RunError, RunStore
from dmlcore.storage.task import Progress, ProgressState, Task

LOOK = 0.2  # seconds between two looks at the run in work
log = logging.getLogger(__name__)


class PlaceState(ProgressState):
    """Where runs made one after another stand; done and total count them."""

    run: str = ""  # id of the run in work


S = TypeVar("S", bound=PlaceState)


def start(place: Task[S], request: S, arguments: Sequence[str]) -> None:
    """Start `python -m dmlcore ARGUMENTS`, which makes the runs of a place; raises JobError while somebody does."""
    place.start(["-m", "dmlcore", *arguments, "--runs", str(place.path.parents[1])], request)


def find(entries: Sequence[StudyRun], store: RunStore) -> list[Run | None]:
    """The run of each entry, or None: of all runs with its spec, whatever their name, the one that is done.

    Of several the first that was made, so that a later one changes nothing; without a done one the furthest.
    """
    made = _made({number: entry.spec for number, entry in enumerate(entries) if entry.starts is None}, store)
    pretrained = {
        _what(entries[number].spec): run.id for number, run in made.items() if entries[number].variant == PRETRAINING
    }
    started: dict[int, RunSpec] = {}
    for number, entry in enumerate(entries):
        if entry.starts is not None and (run_id := pretrained.get(_what(entry.starts))):
            started[number] = entry.after(run_id)
    made |= _made(started, store) if started else {}
    return [made.get(number) for number in range(len(entries))]


def _made(specs: Mapping[int, RunSpec], store: RunStore) -> dict[int, Run]:
    """The best run of each of these specs that has any."""
    wanted = {number: _what(spec) for number, spec in specs.items()}
    digests = set(wanted.values())
    by_digest: dict[str, list[Run]] = {}
    for made in reversed(store.find(lambda run_id, brief: brief.digest in digests)):  # oldest first
        with contextlib.suppress(RunError):  # deleted this very moment
            by_digest.setdefault(_what(made.spec), []).append(made)
    best = {digest: _best(runs) for digest, runs in by_digest.items()}
    return {number: run for number, digest in wanted.items() if (run := best.get(digest))}


def refuse_missing_data(entries: Sequence[StudyRun]) -> None:
    """Raise DataError for the first data set that is not there; it says where it looked."""
    for name, root in {(entry.spec.data.name, entry.spec.data.root): None for entry in entries}:
        if data.available(name, root) is None:
            data.locate(name, root)


def make(
    entries: Sequence[StudyRun],
    store: RunStore,
    place: Task[S],
    request: S,
    *,
    report: Callable[[str], object] = log.info,
    stop: Callable[[], bool] = lambda: False,
) -> S:
    """Make the runs of the entries that are not done, one after another, each in a process of its own.

    Done runs are kept, lost, cancelled and failed ones resumed, missing ones trained; one that fails costs only itself
    and what starts from it. request: the first state to record. stop() is asked a few times a second, as is the cancel
    file. Raises locks.Busy if another process is at work in this place, DataError.
    """
    refuse_missing_data(entries)

    def stopped() -> bool:
        return stop() or place.cancel_requested()

    def all_runs(progress: Progress[S]) -> S:
        failed: list[str] = []
        for number, entry in enumerate(entries, 1):
            # The last one's run; the entries before it say which pretrained run it starts from.
            run = find(entries[:number], store)[-1]
            label = f"run {number} of {len(entries)}: {entry.variant}, seed {entry.seed}"
            if not (run and run.state().state == "done"):
                run = run or _create(entry, entries, store)
                if run is None:
                    report(f"{label}: left out, as its pretraining is not done")
                    failed.append(label)
                    continue
                progress.say(label, number - 1, len(entries), run=run.id)
                report(f"{label}: {run.id}")
                work_on(run, stopped)
                if stopped():
                    report("stopped as asked; the same command goes on from there")
                    raise KeyboardInterrupt
            _weigh(run)
            report(f"{label}: {run.id} {run.status()}, {run.state().message}")
            if run.state().state != "done":
                failed.append(label)
        message = f"{len(failed)} of {len(entries)} runs are not done: {'; '.join(failed)}" if failed else "all done"
        return progress.end(message, state="incomplete" if failed else "done", run="")

    try:
        return place.work(all_runs, request)
    except KeyboardInterrupt:
        if (state := place.state()) is None:
            raise
        return state


def work_on(run: Run, stopped: Callable[[], bool]) -> None:
    """Train or resume a run in a process of its own and wait for its end; with stopped() it ends after its step."""
    process = None
    if not run.alive():
        with run.lock():
            launch.prepare_resume(run)
        process = launch.start(run, "train")
    asked = False
    while process.poll() is None if process else run.alive():  # without a process: somebody else is at it
        if stopped() and not asked:
            launch.cancel(run)
            asked = True
        time.sleep(LOOK)


def _create(entry: StudyRun, entries: Sequence[StudyRun], store: RunStore) -> Run | None:
    """A new run for an entry, or None where what it starts from is not done."""
    if entry.starts is None:
        return store.create(entry.spec)
    before = [e for e in entries if e.variant == PRETRAINING and e.spec == entry.starts]
    run = find(before, store)[0]
    return store.create(entry.after(run.id)) if run and run.state().state == "done" else None


def _weigh(run: Run) -> None:
    """Write the weight maps of a finished run on collages, whose foreground tile is known; a failure is in its log."""
    on_collages = data.describe(run.spec.data.name).grid > 0
    if on_collages and run.state().state == "done" and weight_maps.path_of(run) is None:
        launch.start(run, "weigh").wait()


def _best(runs: Sequence[Run]) -> Run | None:
    """Of runs with one spec, oldest first: the first that is done, else the furthest."""
    states = []
    for run in runs:
        with contextlib.suppress(RunError):  # deleted this very moment
            states.append((run, run.state()))
    done = [run for run, state in states if state.state == "done"]
    return done[0] if done else max(states, key=lambda pair: pair[1].step, default=(None, None))[0]


def _what(spec: RunSpec) -> str:
    return nameless(spec).digest()
