"""Functions to start, resume and cancel training runs and jobs on runs as background processes; no call blocks.

A job is one of the tasks in `JobName`, never an arbitrary command. It survives the process that started it, even if
that process is killed with -9. All state is on disk and none in this module. The worker of a run or job itself waits
for a free slot on its device (`device_queue`).
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator

from dmlcore.inspection.maps.settings import Settings
from dmlcore.jobs import device_queue
from dmlcore.jobs.backends import choice
from dmlcore.spec import RunSpec, own_network
from dmlcore.storage import locks
from dmlcore.storage.run_directory import LOCK, LOG, kept_checkpoints
from dmlcore.storage.runs import Run, RunError, RunStore
from dmlcore.storage.task import BUSY, ProgressState, Task, spawn_detached
from dmlcore.storage.task import JobError as JobError  # re-exported, since functions of this module raise it

# maximum number of waiting or running runs in a store, and likewise of jobs; each waiting one is a process of about 50
# MB
MAX_QUEUED = 32
REQUESTS = Path(".queue") / "asked"
JobName = Literal[
    "evaluate", "project", "weigh", "snapshots", "project-over-training", "true-step", "influence", "search-all"
]
_FROM_CHECKPOINTS = ("snapshots", "project-over-training")


def _only_settings(more: tuple[str, ...]) -> tuple[str, ...]:
    """Return `more` if it contains no option but --settings, since a state file may come from another user."""
    if more and (len(more) != 2 or more[0] != "--settings"):
        raise ValueError("the only option of a job is --settings with its value")
    return more


class JobState(ProgressState):
    """State of a background job that works on a run, such as an evaluation, with the job's task and settings."""

    task: JobName
    # further command-line arguments of the worker
    more: Annotated[tuple[str, ...], AfterValidator(_only_settings)] = ()


class Job(Task[JobState]):
    """A job on a run, separate from its training task; it holds the run's lock and has a state file in `.queue/asked`.

    The state file is removed when the job is done. `recovery` therefore finds interrupted jobs in one place, and the
    state of the run itself remains "done".
    """

    def __init__(self, run: Run) -> None:
        super().__init__(run.path, JobState)
        self.run = run

    @property
    def state_file(self) -> Path:
        return self.path.parent / REQUESTS / f"{self.run.id}.json"

    @property
    def cancel_file(self) -> Path:
        return self.state_file.with_suffix(".cancel")

    def is_alive(self) -> bool:
        """Return True if the worker of this job, or the process that monitors it, holds the lock of the run.

        The worker of a job on a backend may be a process of another machine.
        """
        state, owner = self.state(), locks.holder(self.path / LOCK)
        return state is not None and owner != 0 and (owner == state.pid or state.backend != "")

    def lock(self, wait: float = 2.0) -> locks.ProcessLock:
        """Return the lock of the run, which a job shares with the training task."""
        return self.run.lock(wait)

    def record(self, state: JobState) -> JobState:
        """Store the state; if the job is done, remove the state file, since the run directory holds the result.

        The state of a job on a backend is kept for the process that monitors it.
        """
        if state.state == "done" and not state.backend:
            self.state_file.unlink(missing_ok=True)
            return state
        self.state_file.parent.mkdir(parents=True, exist_ok=True)
        return super().record(state)

    def start_worker(self) -> None:
        """Start the worker process of a queued job."""
        if state := self.state():
            start_process(self.run, state.task, *state.more, *backend_arguments(state.backend))


def launch(
    spec: RunSpec,
    store: RunStore,
    *,
    backend: str = "",
    processes: int = 1,
) -> str:
    """Create a run, queue it and start its worker process, which trains it once its device is free.

    An error that only the worker can detect, because only the worker imports torch, is recorded as state "failed".

    Args:
        spec: Spec of the run.
        store: Store that receives the run.
        backend: Backend that executes the run, as parsed by `choice.parse`. With a remote backend, the process on this
            machine only monitors the run.
        processes: Number of data-parallel processes, 1 to runs.MAX_PROCESSES.

    Returns:
        Id of the run.

    Raises:
        DataError: The data set is missing.
        JobError: MAX_QUEUED runs are waiting or running, or the backend is invalid.
    """
    from dmlcore import data  # imported late: it imports numpy, which other functions of this module do not need

    if data.available(spec.data.name, spec.data.root) is None:
        # raises DataError, with the folders searched, if the data set is missing
        data.locate(spec.data.name, spec.data.root)
    backend = choice.parse(backend).require().text
    busy = [run.id for run in active(store)]
    if len(busy) >= MAX_QUEUED:
        raise JobError(f"{len(busy)} runs are already queued or running; cancel one or wait: {', '.join(busy)}")
    run = store.create(spec)
    if backend or processes != 1:
        with run.lock():
            run.update(backend=backend, processes=processes)
    start_process(
        run, "train", *backend_arguments(backend), *(("--processes", str(processes)) if processes != 1 else ())
    )
    return run.id


def active(store: RunStore) -> list[Run]:
    """Return the waiting and running runs, newest first."""
    return [run for run in store.find(lambda run_id, brief: True, state=BUSY) if run.is_busy()]


def resume(run: Run, backend: str | None = None) -> str:
    """Continue a lost, cancelled or failed run from its last checkpoint.

    Args:
        run: The run to continue.
        backend: Backend that executes the run; None: the recorded one if $DML_BACKENDS offers it, else this machine.

    Returns:
        The reason why the run does not continue on its recorded backend, which is also logged, or "".

    Raises:
        JobError: The run is in use or done, or another program trained it.
    """
    refused = ""
    with run.exclusive_start():
        if backend is None:
            backend, refused = choice.resolve_recorded(run.state().backend)
        prepare_resume(run, backend)
    if refused:
        append_warning(run, f"continues {refused}")
    start_process(run, "train", *backend_arguments(run.state().backend))
    return refused


def prepare_resume(run: Run, backend: str = "") -> None:
    """Queue a run again, on the given backend; the caller must hold its lock. Raises JobError if that is impossible."""
    state = run.state()
    if run.is_embedding_set:
        raise JobError(f"{run.id} was trained by another program; start that program again, which logs a new run")
    if reason := own_network.refusal(run.spec.model.name):
        raise JobError(f"model.name: {reason}")
    if state.state == "done":
        raise JobError(f"{run.id} is finished; there is nothing left to resume")
    where = choice.parse(backend).require().text
    device_queue.clear_start_now(run)
    run.queue(state.replace(backend=where))


def append_warning(run: Run, text: str) -> None:
    """Append a warning to the log file of a run directly, so that it does not appear in the log of this process."""
    with open(run.path / LOG, "a") as file:
        file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')},000 WARNING {text}\n")


def cancel(run: Run) -> None:
    """Cancel a run: a running worker stops after its current step; a run without one is cancelled immediately."""
    run.cancel()


def evaluate(run: Run) -> None:
    """Start a job that scores the test split with the best weights; raises JobError as `start_job` does."""
    start_job(run, "evaluate")


def project(run: Run, settings: Settings | None = None) -> None:
    """Start a job that maps the newest embeddings, by default with t-SNE and the run's seed; raises JobError."""
    start_job(run, "project", settings.to_json() if settings else "")


def start_job(run: Run, task: JobName, settings: str = "", backend: str = "") -> None:
    """Start a job on a run.

    Args:
        run: The run.
        task: The job. Among others, "weigh" computes the pooling weight of each position in each test image,
            "snapshots" embeds the test split with each kept checkpoint, and "search-all" searches the neighbours of all
            queries.
        settings: JSON of the job's settings: `maps.Settings` for a map, `Question` for "true-step" and
            "influence", `whole_search.WholeSearch` for a search.
        backend: Backend that executes the job, as parsed by `choice.parse`.

    Raises:
        JobError: The run is in use, MAX_QUEUED jobs are waiting or running, or required embeddings or kept checkpoints
            are missing.
    """
    if task in _FROM_CHECKPOINTS and not kept_checkpoints(run.path):
        raise JobError(f"{run.id} has no kept checkpoints; train a run with schedule.keep_every, for example 50")
    if task not in ("evaluate", *_FROM_CHECKPOINTS) and run.embeddings() is None:
        raise JobError(f"{run.id} has no embeddings yet; evaluate it first")
    under_way = [job for job in pending_jobs(RunStore(run.path.parent)) if job.run.id != run.id and job.is_busy()]
    if len(under_way) >= MAX_QUEUED:
        raise JobError(f"{len(under_way)} jobs are already queued or running; wait until some have finished")
    backend = choice.parse(backend).require().text
    job = Job(run)
    with job.exclusive_start():
        job.queue(JobState(task=task, more=("--settings", settings) if settings else (), backend=backend))
    job.start_worker()


def pending_jobs(store: RunStore) -> list[Job]:
    """Return the jobs that are queued or running; remove the state files of jobs on deleted runs."""
    jobs = []
    for path in sorted((store.root / REQUESTS).glob("*.json")):
        try:
            job = Job(store.open(path.stem))
        except RunError:
            path.unlink(missing_ok=True)
            continue
        if (state := job.state()) and state.state in BUSY:
            jobs.append(job)
    return jobs


def backend_arguments(backend: str) -> tuple[str, ...]:
    """Return the command-line arguments that select a backend; () for this machine."""
    return ("--backend", backend) if backend else ()


def start_process(run: Run, task: str, *more: str) -> subprocess.Popen[bytes]:
    """Start `python -m dmlcore work TASK RUN` in the background, with log.txt of the run as its output."""
    command = ["-m", "dmlcore", "work", task, run.id, "--runs", str(run.path.parent), *more]
    return spawn_detached(command, run.path / LOG)
