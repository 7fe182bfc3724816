"""Interface of execution backends, which start tasks on runs and return handles for polling them."""

from __future__ import annotations

import subprocess
from typing import Protocol

from dmlcore.jobs import launch
from dmlcore.jobs.backends.choice import parse
from dmlcore.storage.runs import Run


class Work(Protocol):
    """Handle of a task that a backend executes: training or a job on a run."""

    def has_ended(self) -> bool:
        """Return True once the task has ended and the results are stored; must be polled a few times per second."""

    def cancel(self) -> None:
        """Request that the task stop after its current step; its results so far are kept."""


class Backend(Protocol):
    """Interface of an execution backend, which starts training runs and jobs."""

    # maximum number of tasks that one caller may have started at a time; the backend queues them as necessary
    max_concurrent: int

    def begin(self, run: Run, task: str, settings: str = "") -> Work:
        """Start a task on a run.

        Args:
            run: The run.
            task: "train", which also resumes an existing run, or a job of `launch.JobName`.
            settings: JSON of the job's settings.

        Raises:
            JobError: The task cannot be started.
            locks.Busy: Another process is working on the run.
        """


class LocalWork:
    """Handle of a worker process started on this machine, or of a run that another process was already training."""

    def __init__(self, run: Run, process: subprocess.Popen[bytes] | None) -> None:
        self._run, self._process = run, process

    def has_ended(self) -> bool:
        """Return True once the worker has ended; for a run that another process trains, once its lock is free."""
        return not self._run.is_alive() if self._process is None else self._process.poll() is not None

    def cancel(self) -> None:
        """Cancel the training run."""
        launch.cancel(self._run)


class LocalBackend:
    """Backend that starts worker processes on this machine; they wait for a free slot on the device."""

    max_concurrent = 1

    def begin(self, run: Run, task: str, settings: str = "") -> LocalWork:
        """Start a worker process; if another process is already training the run, return a handle of that training."""
        if task != "train":
            return LocalWork(run, launch.start_process(run, task, *(("--settings", settings) if settings else ())))
        if run.is_alive():
            return LocalWork(run, None)
        with run.lock():
            launch.prepare_resume(run, "")
        return LocalWork(run, launch.start_process(run, task))


def create_backend(text: str) -> Backend:
    """Create the backend described by `text`, as parsed by `choice.parse`.

    Raises JobError if the text is invalid or the package of the backend is not installed.
    """
    chosen = parse(text).require()
    if chosen.kind == "local":
        return LocalBackend()
    from dmlcore.jobs.backends.remote import RemoteBackend  # imported late, as most processes need no cluster

    if chosen.kind == "ray":
        from dmlcore.jobs.backends.ray_engine import RayEngine

        return RemoteBackend(chosen, RayEngine(chosen))
    from dmlcore.jobs.backends.slurm_engine import SlurmEngine

    return RemoteBackend(chosen, SlurmEngine(chosen))
