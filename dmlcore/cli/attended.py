"""Execution of training runs and jobs on a backend chosen with `--backend`.

This process waits for the task, monitors it and copies its results.
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
from dmlcore.storage.task import JobError, Progress

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


def run_job_on_backend(
    backend: str, run: Run, task: str, settings: str, progress: Progress[launch.JobState]
) -> launch.JobState:
    """Execute a job on a remote backend, wait for its end and return its final state.

    The progress on the node is reported to `progress`. The caller must hold the run's lock. Raises JobError if the job
    failed.
    """
    work = backends.create_backend(backend).begin(run, task, settings)
    assert isinstance(work, RemoteWork)
    try:
        while not work.has_ended():
            progress.report(work.progress.message, work.progress.done, work.progress.total)
            time.sleep(POLL_INTERVAL)
    except KeyboardInterrupt:
        monitor(work, lambda: True)
        raise
    assert work.result is not None
    if work.result.state == "failed":
        raise JobError(work.result.message)
    return progress.finished(work.result.message)


def monitor(work: backends.Work, stop: Callable[[], bool]) -> None:
    """Wait until a remote task has ended; once `stop` returns True, request that it stop after its current step."""
    asked = False
    while not work.has_ended():
        if stop() and not asked:
            work.cancel()
            asked = True
        time.sleep(POLL_INTERVAL)
