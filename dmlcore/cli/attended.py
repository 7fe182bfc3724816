"""Work that a backend does elsewhere, while a process here attends to it."""

from __future__ import annotations

import time
from collections.abc import Callable

from dmlcore.cli.options import CommandError, stop_on_signal
from dmlcore.jobs import launch
from dmlcore.jobs.backends import backend as backends
from dmlcore.jobs.backends.choice import parse
from dmlcore.jobs.backends.remote import RemoteWork
from dmlcore.storage.runs import Run, RunState
from dmlcore.storage.task import JobError, Progress

LOOK = 0.2  # seconds between two looks


def elsewhere(backend: str, processes: int | None = None) -> str:
    """What `--backend` names, "" for this machine; raises JobError, CommandError."""
    where = parse(backend).require().text
    if where and processes:
        raise CommandError("--processes: a run elsewhere has as many as it began with; leave it or --backend out")
    return where


def train_at(backend: str, run: Run) -> RunState:
    """Have a run trained by a backend, and wait for its end."""
    attend(backends.of(backend).begin(run, "train"), stop_on_signal())
    return run.state()


def do_at(backend: str, run: Run, task: str, settings: str, progress: Progress[launch.JobState]) -> launch.JobState:
    """Have a job on a run whose lock we hold done by a backend, and wait for its end."""
    work = backends.of(backend).begin(run, task, settings)
    assert isinstance(work, RemoteWork)
    try:
        while not work.over():
            progress.say(work.standing.message, work.standing.done, work.standing.total)
            time.sleep(LOOK)
    except KeyboardInterrupt:
        attend(work, lambda: True)
        raise
    assert work.outcome is not None
    if work.outcome.state == "failed":
        raise JobError(work.outcome.message)
    return progress.end(work.outcome.message)


def attend(work: backends.Work, stop: Callable[[], bool]) -> None:
    """Look at work elsewhere until it is over; with stop() it ends after its step."""
    asked = False
    while not work.over():
        if stop() and not asked:
            work.cancel()
            asked = True
        time.sleep(LOOK)
