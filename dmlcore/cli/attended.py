"""Execution of training runs and jobs on a backend chosen with `--backend`.

This process waits for the task and monitors it; see `jobs.backends.remote`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from dmlcore.cli import together
from dmlcore.cli.options import CommandError, stop_on_signal
from dmlcore.jobs import launch
from dmlcore.jobs.backends import backend as backends
from dmlcore.jobs.backends.choice import parse
from dmlcore.jobs.backends.remote import RemoteWork
from dmlcore.storage.runs import Run, RunState
from dmlcore.storage.task import JobError

POLL_INTERVAL = 0.2  # seconds between two polls of a remote task


def require_backend(backend: str) -> str:
    """Return the value of `--backend` in canonical form, or "" for this machine.

    Raises JobError if the backend is invalid or its package is not installed, and CommandError under torchrun.
    """
    chosen = parse(backend)
    if chosen.text and "WORLD_SIZE" in os.environ:
        raise CommandError(
            "--backend: torchrun has already started the processes of this run; use either torchrun or --backend"
        )
    return chosen.require().text


def train_on_backend(backend: str, run: Run, processes: int | None = None) -> RunState:
    """Train a run on a backend, wait for its end and return its final state.

    Args:
        backend: The backend, as parsed by `choice.parse`.
        run: The run.
        processes: Number of data-parallel processes; None: the number recorded in the run's state.
    """
    with run.lock():
        before = run.state()
        number = together.count_processes(processes, before.processes)
        if number != before.processes and before.state != "done":
            run.update(processes=number)
    monitor(backends.create_backend(backend).begin(run, "train"), stop_on_signal())
    return run.state()


def run_job_on_backend(backend: str, run: Run, task: launch.JobName, settings: str = "") -> str:
    """Execute a job on a remote backend, wait for its end and return its final message.

    Raises:
        JobError: The job failed.
        KeyboardInterrupt: The job was cancelled.
    """
    work = backends.create_backend(backend).begin(run, task, settings)
    assert isinstance(work, RemoteWork)
    monitor(work, stop_on_signal())
    job = launch.Job(run)
    ended = job.state()
    if ended and ended.state == "failed":
        raise JobError(work.message)
    if ended and ended.state == "cancelled":
        raise KeyboardInterrupt
    job.state_file.unlink(missing_ok=True)
    return work.message


def monitor(work: backends.Work, stop: Callable[[], bool]) -> None:
    """Wait until a remote task has ended; once `stop` returns True, request that it stop after its current step."""
    asked = False
    while not work.has_ended():
        if stop() and not asked:
            work.cancel()
            asked = True
        time.sleep(POLL_INTERVAL)
