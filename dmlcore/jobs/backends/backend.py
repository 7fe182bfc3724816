"""Interface of backends: a backend starts a task on a run and returns a handle, which is polled until it has ended."""

from __future__ import annotations

import subprocess
from typing import Protocol

from dmlcore.jobs import launch
from dmlcore.jobs.backends.choice import parse
from dmlcore.storage.runs import Run


class Work(Protocol):
    """Handle of a task that executes somewhere."""

    def has_ended(self) -> bool:
        """Poll the task, a few times per second; return True once it has ended. The run then holds the result."""

    def cancel(self) -> None:
        """Stop the task after its current step, keeping everything."""


class Backend(Protocol):
    """Place where tasks execute."""

    # number of tasks that one process may have started at a time; the backend queues those without a free place
    max_concurrent: int

    def begin(self, run: Run, task: str, settings: str = "") -> Work:
        """Start "train", which resumes an existing run, or a task of `launch.JobName`; raises JobError, locks.Busy."""


class LocalWork:
    """Handle of a process of this machine; without a process, of a run that another process is training."""

    def __init__(self, run: Run, process: subprocess.Popen[bytes] | None) -> None:
        self._run, self._process = run, process

    def has_ended(self) -> bool:
        """Return True once the process has ended."""
        return not self._run.is_alive() if self._process is None else self._process.poll() is not None

    def cancel(self) -> None:
        """Cancel the training run."""
        launch.cancel(self._run)


class LocalBackend:
    """Processes of this machine, which wait for their turn on the device by themselves."""

    max_concurrent = 1

    def begin(self, run: Run, task: str, settings: str = "") -> LocalWork:
        """Start a process, unless another one is training the run already."""
        if task != "train":
            return LocalWork(run, launch.start_process(run, task, *(("--settings", settings) if settings else ())))
        if run.is_alive():
            return LocalWork(run, None)
        with run.lock():
            launch.prepare_resume(run, "")
        return LocalWork(run, launch.start_process(run, task))


def create_backend(text: str) -> Backend:
    """Return the backend of a line, as parsed by `choice.parse`; raises JobError, also if its package is missing."""
    chosen = parse(text).require()
    if chosen.kind == "local":
        return LocalBackend()
    from dmlcore.jobs.backends.remote import RemoteBackend  # imported late: most processes need no cluster

    if chosen.kind == "ray":
        from dmlcore.jobs.backends.ray_engine import RayEngine

        return RemoteBackend(chosen, RayEngine(chosen))
    from dmlcore.jobs.backends.slurm_engine import SlurmEngine

    return RemoteBackend(chosen, SlurmEngine(chosen))
