"""Training runs, and jobs on trained ones, as detached processes: launch, resume, cancel, ask; no call waits.

A job takes a run, never a command. It outlives its launcher, even one killed with -9; what it does is read from files,
and this module holds nothing. It waits for its turn on the device in its own process (`device_queue`).
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator

from dmlcore.inspection.maps.settings import Settings
from dmlcore.jobs import device_queue
from dmlcore.jobs.backends import choice
from dmlcore.spec import RunSpec
from dmlcore.storage import locks
from dmlcore.storage.run_directory import LOCK, LOG, kept
from dmlcore.storage.runs import Run, RunError, RunStore
from dmlcore.storage.task import BUSY, ProgressState, Task, spawn_detached
from dmlcore.storage.task import JobError as JobError  # what `launch` and its like raise

MOST_QUEUED = 32  # runs waiting or working in one store, and as many jobs: each that waits is a process of some 50 MB
ASKED = Path(".queue") / "asked"
JobName = Literal[
    "evaluate", "project", "weigh", "snapshots", "project-over-training", "true-step", "influence", "search-all"
]
_FROM_CHECKPOINTS = ("snapshots", "project-over-training")


def _only_settings(more: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse any other option: the file that holds them may have been written by somebody else."""
    if more and (len(more) != 2 or more[0] != "--settings"):
        raise ValueError("the only option of a job is --settings with its value")
    return more


class JobState(ProgressState):
    """State of a job on a run."""

    task: JobName
    more: Annotated[tuple[str, ...], AfterValidator(_only_settings)] = ()  # further arguments of its process


class Job(Task[JobState]):
    """The job on a run, apart from its training: it holds the lock of the run, `.queue/asked` knows of it until done.

    So `recovery` finds those that were cut off in one place, and the run itself stays "done".
    """

    def __init__(self, run: Run) -> None:
        super().__init__(run.path, JobState)
        self.run = run

    @property
    def state_file(self) -> Path:
        return self.path.parent / ASKED / f"{self.run.id}.json"

    @property
    def cancel_file(self) -> Path:
        return self.state_file.with_suffix(".cancel")

    def is_alive(self) -> bool:
        """Whether its own process works on the run now."""
        state, owner = self.state(), locks.holder(self.path / LOCK)
        return state is not None and owner != 0 and owner == state.pid

    def lock(self, wait: float = 2.0) -> locks.ProcessLock:
        """Return the lock of the run."""
        return self.run.lock(wait)

    def record(self, state: JobState) -> JobState:
        """Keep the state until it is done: what comes of a job is a file of the run."""
        if state.state == "done":
            self.state_file.unlink(missing_ok=True)
            return state
        self.state_file.parent.mkdir(parents=True, exist_ok=True)
        return super().record(state)

    def begin(self) -> None:
        """Start the process of what is queued."""
        if state := self.state():
            start(self.run, state.task, *state.more, *at(state.backend))


def launch(
    spec: RunSpec,
    store: RunStore,
    *,
    check: Callable[[RunSpec], object] | None = None,
    backend: str = "",
    processes: int = 1,
) -> str:
    """Create a run and queue it, in a process of its own that trains it when its turn comes; return the run id.

    backend: where that is done, as `choice.parse` reads it; then the process only attends to it. processes: so many,
    from 1 to runs.MOST_PROCESSES, train it together. Raises DataError if
    the data set is not there, JobError while MOST_QUEUED runs are waiting or working, and what check(spec) raises. What
    only the worker can find (it alone imports torch) becomes the state "failed".
    """
    from dmlcore import data  # late: numpy comes with it, and no command needs it to begin with

    if data.available(spec.data.name, spec.data.root) is None:
        data.locate(spec.data.name, spec.data.root)  # raises, and says where it looked
    if check:
        check(spec)
    backend = choice.parse(backend).require().text
    busy = [run.id for run in active(store)]
    if len(busy) >= MOST_QUEUED:
        raise JobError(f"{len(busy)} runs are waiting or working already; cancel one or wait: {', '.join(busy)}")
    run = store.create(spec)
    if backend or processes != 1:
        with run.lock():
            run.update(backend=backend, processes=processes)
    start(run, "train", *at(backend), *(("--processes", str(processes)) if processes != 1 else ()))
    return run.id


def active(store: RunStore) -> list[Run]:
    """The runs that wait or work, newest first."""
    return [run for run in store.find(lambda run_id, brief: True, state=BUSY) if run.is_busy()]


def resume(run: Run, backend: str | None = None) -> str:
    """Continue a lost, cancelled or failed run from its last checkpoint.

    Args:
        run: The run to continue.
        backend: Where to continue; None: where it was, if $DML_BACKENDS offers that backend, else on this machine.

    Returns:
        Why it does not continue where it was, which its log says too, or "".

    Raises:
        JobError: The run is in use or done.
    """
    refused = ""
    with run.exclusive_start():
        if backend is None:
            backend, refused = choice.recorded(run.state().backend)
        prepare_resume(run, backend)
    if refused:
        note(run, f"continues {refused}")
    start(run, "train", *at(run.state().backend))
    return refused


def prepare_resume(run: Run, backend: str = "") -> None:
    """Put a run whose lock this process holds back in the queue of a backend; raises JobError if it is done."""
    state = run.state()
    if state.state == "done":
        raise JobError(f"{run.id} is done; there is nothing left to resume")
    where = choice.parse(backend).require().text
    device_queue.withdraw_hurry(run)
    run.queue(state.replace(backend=where))


def note(run: Run, text: str) -> None:
    """Append a warning to the log of a run, wherever this process writes its own log."""
    with open(run.path / LOG, "a") as file:
        file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')},000 WARNING {text}\n")


def cancel(run: Run) -> None:
    """End a run after its current step, keeping everything; a run that nobody works on is cancelled here and now."""
    run.cancel()


def evaluate(run: Run) -> None:
    """Embed and score the test split with the best weights so far; raises JobError while the run is in use."""
    ask(run, "evaluate")


def project(run: Run, settings: Settings | None = None) -> None:
    """Make the map of the newest embeddings (default: t-SNE, seed of the run); raises JobError as `ask` does."""
    ask(run, "project", settings.to_json() if settings else "")


def ask(run: Run, task: JobName, settings: str = "", backend: str = "") -> None:
    """Start a job and note it; raises JobError while the run is in use, or MOST_QUEUED jobs wait or work.

    Also before an evaluation, and without kept checkpoints where a job goes over them. "weigh": where the pooling looks
    in each test image; "snapshots": the test split by each kept checkpoint; "search-all": the neighbours of all queries
    of many. settings: JSON, of a map `maps.Settings`, of a true step or an influence its `Question`, of a search
    `whole_search.WholeSearch`.
    """
    if task in _FROM_CHECKPOINTS and not kept(run.path):
        raise JobError(f"{run.id} has kept no checkpoints; train one with schedule.keep_every, for example 50")
    if task not in ("evaluate", *_FROM_CHECKPOINTS) and run.embeddings() is None:
        raise JobError(f"{run.id} has no embeddings yet; evaluate it first")
    under_way = [job for job in asked(RunStore(run.path.parent)) if job.run.id != run.id and job.is_busy()]
    if len(under_way) >= MOST_QUEUED:
        raise JobError(f"{len(under_way)} jobs are waiting or working already; wait until some are over")
    backend = choice.parse(backend).require().text
    job = Job(run)
    with job.exclusive_start():
        job.queue(JobState(task=task, more=("--settings", settings) if settings else (), backend=backend))
    job.begin()


def asked(store: RunStore) -> list[Job]:
    """The jobs that were asked for and are not over; of runs that are gone they are forgotten."""
    jobs = []
    for path in sorted((store.root / ASKED).glob("*.json")):
        try:
            job = Job(store.open(path.stem))
        except RunError:
            path.unlink(missing_ok=True)
            continue
        if (state := job.state()) and state.state in BUSY:
            jobs.append(job)
    return jobs


def at(backend: str) -> tuple[str, ...]:
    """What more a process is told that attends to work elsewhere."""
    return ("--backend", backend) if backend else ()


def start(run: Run, task: str, *more: str) -> subprocess.Popen[bytes]:
    """Start `python -m dmlcore work TASK RUN`, detached, with log.txt of the run as its output."""
    command = ["-m", "dmlcore", "work", task, run.id, "--runs", str(run.path.parent), *more]
    return spawn_detached(command, run.path / LOG)
