"""Batches of runs for studies, protocols and searches, trained one after another or in parallel on a cluster.

A place is the directory of a task in the run store; the state of the task holds the request. The runs are ordinary runs
of the store and are found by their spec.
"""

from __future__ import annotations

import contextlib
import logging
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field

from dmlcore import data
from dmlcore.experiments.studies.expansion import StudyRun
from dmlcore.experiments.studies.spec import PRETRAINING
from dmlcore.inspection.local import weight_maps
from dmlcore.jobs import launch
from dmlcore.jobs.backends import backend
from dmlcore.jobs.backends.backend import Backend, Work
from dmlcore.jobs.backends.side_by_side import ConcurrentWork, Pause
from dmlcore.spec import RunSpec
from dmlcore.storage.listing import without_name
from dmlcore.storage.runs import Run, RunError, RunStore, best_validation
from dmlcore.storage.task import Progress, ProgressState, Task

log = logging.getLogger(__name__)


# An argument read from a file must not start with "-": it would be parsed as an option, which could select a backend.
Positional = Annotated[str, Field(pattern=r"^[^-]")]


class PlaceState(ProgressState):
    """Progress of a batch of runs; `done` and `total` are numbers of runs."""

    run: str = ""  # id of the current run; if there are several, of the one started last
    beside: tuple[str, ...] = ()  # the other current runs

    @property
    def at_work(self) -> tuple[str, ...]:
        """Ids of all runs in progress."""
        return (*self.beside, *((self.run,) if self.run else ()))


S = TypeVar("S", bound=PlaceState)


def start(place: Task[S], request: S, arguments: Sequence[str]) -> None:
    """Start `python -m dmlcore ARGUMENTS`, which trains the runs of a batch, as a detached process.

    Raises JobError if a process is training them already.
    """
    place.start(
        ["-m", "dmlcore", *arguments, *launch.backend_arguments(request.backend), "--runs", str(place.path.parents[1])],
        request,
    )


def find(entries: Sequence[StudyRun], store: RunStore) -> list[Run | None]:
    """Return the run for each entry, or None; a run matches if its spec is equal except for the name.

    Among several matches, the oldest finished run is returned, so that runs added later do not change results; if none
    is finished, the run with the most steps.
    """
    made = _find_runs({number: entry.of_spec for number, entry in enumerate(entries) if entry.starts is None}, store)
    pretrained = {
        entries[number].of_spec: run.id for number, run in made.items() if entries[number].variant == PRETRAINING
    }
    started: dict[int, str] = {}
    for number, entry in enumerate(entries):
        if entry.starts is not None and (run_id := pretrained.get(_describe(entry.starts))):
            started[number] = _describe(entry.after(run_id))
    made |= _find_runs(started, store) if started else {}
    return [made.get(number) for number in range(len(entries))]


def _find_runs(wanted: Mapping[int, str], store: RunStore) -> dict[int, Run]:
    """Return the run for each digest of a spec, by entry number; entries without a run are left out.

    Of several runs with one spec, the oldest finished one is used or, if none is finished, the one with the most steps.
    """
    digests = set(wanted.values())
    by_digest: dict[str, list[Run]] = {}
    for made in reversed(store.find(lambda run_id, brief: brief.digest in digests)):  # oldest first
        with contextlib.suppress(RunError):  # deleted at this moment
            by_digest.setdefault(_describe(made.spec), []).append(made)
    best = {digest: _best(runs) for digest, runs in by_digest.items()}
    return {number: run for number, digest in wanted.items() if (run := best.get(digest))}


def refuse_missing_data(entries: Sequence[StudyRun]) -> None:
    """Raise DataError for the first data set that is missing; the message lists where it was searched."""
    for name, root in {(entry.spec.data.name, entry.spec.data.root): None for entry in entries}:
        if data.available(name, root) is None:
            data.locate(name, root)


def validation_scores(entries: Sequence[StudyRun], store: RunStore) -> dict[str, float | None]:
    """Return the best validation MAP@R in 0..1 of each finished run, by the digest of its entry."""
    pairs = zip(entries, find(entries, store), strict=True)
    return {
        entry.digest(): best_validation(run.metrics()[0]) for entry, run in pairs if run and run.state().state == "done"
    }


def make(
    entries: Sequence[StudyRun],
    store: RunStore,
    place: Task[S],
    request: S,
    *,
    report: Callable[[str], object] = log.info,
    stop: Callable[[], bool] = lambda: False,
    further: Callable[[], Sequence[StudyRun]] = lambda: (),
    total: int = 0,
) -> S:
    """Train the runs of the entries that are not done, on the backend of the request; by default here, one at a time.

    Each run has its own process. Finished runs are kept; lost, cancelled and failed ones are resumed; missing ones are
    created. A failed run affects only itself and the runs that start from it.

    Args:
        entries: The runs to train.
        store: The run store.
        place: Task that records the progress.
        request: First state to record.
        report: Callback for progress messages.
        stop: Called a few times per second, when the cancel file is checked; return True to stop.
        further: Called when the entries are done; returns the runs that depend on their scores.
        total: Number of all runs, including those of `further`; by default the number of entries.

    Raises:
        locks.Busy: If another process is working on this task.
        DataError: If a data set is missing.
        JobError: If a process cannot be started.
    """
    refuse_missing_data(entries)
    where = backend.create_backend(request.backend)

    def stopped() -> bool:
        return stop() or place.cancel_requested()

    def all_runs(progress: Progress[S]) -> S:
        batch = _Batch(entries, store, where, progress, stopped, report, total or len(entries))
        batch.make()
        if not stopped() and (more := further()):
            batch.add(more)
            batch.make()
        if stopped():
            report("stopped as requested; run the same command again to continue")
            raise KeyboardInterrupt
        failed = [batch.label(number) for number in sorted(batch.failed)]
        message = f"{len(failed)} of {batch.total} runs are not finished: {'; '.join(failed)}" if failed else "all done"
        return progress.finished(message, state="incomplete" if failed else "done", run="", beside=())

    try:
        return place.execute(all_runs, request)
    except KeyboardInterrupt:
        if (state := place.state()) is None:
            raise
        return state


class _Batch:
    """Batch of runs in progress; `failed` holds the indices of the entries that did not finish."""

    def __init__(
        self,
        entries: Sequence[StudyRun],
        store: RunStore,
        where: Backend,
        progress: Progress[Any],
        stopped: Callable[[], bool],
        report: Callable[[str], object],
        total: int,
    ) -> None:
        self.entries, self.store, self.where, self.progress = list(entries), store, where, progress
        self.stopped, self.report, self.total = stopped, report, total
        self.failed: set[int] = set()
        self._ended = self._next = 0
        # entry index -> id of its current run, in the order of their start
        self._at_work: dict[int, str] = {}

    def add(self, entries: Sequence[StudyRun]) -> None:
        """Add entries, which the next call of `make` trains."""
        self.entries += entries

    def make(self) -> None:
        """Run all pending entries until `stopped()` returns True."""
        side_by_side = ConcurrentWork(self.where.max_concurrent, self.stopped)
        numbers, self._next = range(self._next, len(self.entries)), len(self.entries)
        side_by_side.run_to_end(self._course(number) for number in numbers)

    def label(self, number: int) -> str:
        """Return the description of an entry's run for progress messages."""
        entry = self.entries[number]
        candidate = f" ({entry.candidate})" if entry.candidate else ""
        return f"run {number + 1} of {self.total}: {entry.variant}{candidate}, seed {entry.seed}"

    def _course(self, number: int) -> Iterator[Work]:
        """Yield the work that trains the run of an entry, if it is not done, and computes its weight maps."""
        entry, label = self.entries[number], self.label(number)
        yield from self._wait_for_prerequisites(number)
        if self.stopped():
            return
        # Look up the run of this entry; the entries before it determine the pretraining run that it starts from.
        run = find(self.entries[: number + 1], self.store)[-1]
        if not (run and run.state().state == "done"):
            run = run or _create(entry, self.entries, self.store)
            if run is None:
                self.report(f"{label}: skipped, because its pretraining is not finished")
                self.failed.add(number)
                self._ended += 1
                return
            self._at_work[number] = run.id
            self._say(label)
            self.report(f"{label}: {run.id}")
            yield self.where.begin(run, "train")
            if self.stopped():
                return
        if _lacks_weight_maps(run):
            yield self.where.begin(run, "weigh")  # a failure is in its log
        # the message of a finished run contains its test score, which is hidden until a candidate is chosen
        hidden = entry.candidate and not entry.if_chosen and run.state().state == "done"
        self.report(f"{label}: {run.id} {run.status()}{'' if hidden else f', {run.state().message}'}")
        if run.state().state != "done":
            self.failed.add(number)
        self._ended += 1
        if self._at_work.pop(number, None) and self._at_work:
            self._say(self.progress.state.message)

    def _wait_for_prerequisites(self, number: int) -> Iterator[Work]:
        """Wait for runs in progress that this entry starts from or that have the same spec."""
        entry = self.entries[number]
        wanted = {_describe(spec) for spec in (entry.spec, entry.starts) if spec is not None}
        before = [n for n in self._at_work if n < number and _describe(self.entries[n].spec) in wanted]
        if before:
            yield Pause(lambda: not any(n in self._at_work for n in before))

    def _say(self, label: str) -> None:
        *beside, last = self._at_work.values()
        self.progress.report(label, self._ended, self.total, run=last, beside=tuple(beside))


def _create(entry: StudyRun, entries: Sequence[StudyRun], store: RunStore) -> Run | None:
    """Create the run for an entry; return None if the pretraining that it starts from is not done."""
    if entry.starts is None:
        return store.create(entry.spec)
    before = [e for e in entries if e.variant == PRETRAINING and e.spec == entry.starts]
    run = find(before, store)[0]
    return store.create(entry.after(run.id)) if run and run.state().state == "done" else None


def _lacks_weight_maps(run: Run) -> bool:
    """Return True if a finished run on collages, whose foreground tile is known, has no weight maps yet."""
    on_collages = data.describe(run.spec.data.name).grid > 0
    return on_collages and run.state().state == "done" and weight_maps.path_of(run) is None


def _best(runs: Sequence[Run]) -> Run | None:
    """Return the run to use among runs with the same spec, oldest first: the first finished one, else the most
    advanced.
    """
    states = []
    for run in runs:
        with contextlib.suppress(RunError):  # deleted this very moment
            states.append((run, run.state()))
    done = [run for run, state in states if state.state == "done"]
    return done[0] if done else max(states, key=lambda pair: pair[1].step, default=(None, None))[0]


def _describe(spec: RunSpec) -> str:
    return without_name(spec).digest()


def describe_machine(runs: Sequence[Run]) -> dict[str, str]:
    """Return the torch version and the machine of trained runs, as fields of a results file."""
    from dmlcore.storage import checkpoint  # imports torch

    last = next((run for run in reversed(runs) if run.state().state == "done"), None)
    saved = checkpoint.load(last.path) if last else None
    return {
        "torch": str(saved.facts["torch"]) if saved else "",
        "machine": f"{_processor()}, {last.state().device if last else ''}",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()
