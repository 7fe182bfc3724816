"""What a backend is: it begins a task on a run and gives back the work under way, to be looked at until it is over."""

from __future__ import annotations

import subprocess
from typing import Protocol

from dmlcore.jobs import launch
from dmlcore.jobs.backends.choice import parse
from dmlcore.storage.runs import Run


class Work(Protocol):
    """A task on a run that is under way somewhere."""

    def over(self) -> bool:
        """Look at it, a few times a second: whether it has ended, however; then the run says how."""

    def cancel(self) -> None:
        """Let it end after its current step, keeping everything."""


class Backend(Protocol):
    """Where tasks are done."""

    at_once: int  # tasks that whoever makes many runs may have under way; what cannot begin yet waits there

    def begin(self, run: Run, task: str, settings: str = "") -> Work:
        """Begin a task of `launch.JobName` or "train", which resumes what is there; raises JobError, locks.Busy."""


class LocalWork:
    """A process of this machine; or none, while another one that we did not start works on the run."""

    def __init__(self, run: Run, process: subprocess.Popen[bytes] | None) -> None:
        self._run, self._process = run, process

    def over(self) -> bool:
        """Whether the process has ended."""
        return not self._run.is_alive() if self._process is None else self._process.poll() is not None

    def cancel(self) -> None:
        """End the training run after its step."""
        launch.cancel(self._run)


class LocalBackend:
    """Processes of this machine, which wait for their turn on the device themselves."""

    at_once = 1

    def begin(self, run: Run, task: str, settings: str = "") -> LocalWork:
        """Start a process, unless one trains the run already."""
        if task != "train":
            return LocalWork(run, launch.start(run, task, *(("--settings", settings) if settings else ())))
        if run.is_alive():
            return LocalWork(run, None)
        with run.lock():
            launch.prepare_resume(run, "")
        return LocalWork(run, launch.start(run, task))


def of(text: str) -> Backend:
    """The backend of a line as `choice.parse` reads it; raises JobError, also where its package is missing."""
    chosen = parse(text).require()
    if chosen.kind == "local":
        return LocalBackend()
    from dmlcore.jobs.backends.remote import RemoteBackend  # late: most need none of this

    if chosen.kind == "ray":
        from dmlcore.jobs.backends.ray_engine import RayEngine

        return RemoteBackend(chosen, RayEngine(chosen))
    from dmlcore.jobs.backends.slurm_engine import SlurmEngine

    return RemoteBackend(chosen, SlurmEngine(chosen))
