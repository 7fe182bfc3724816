"""Execution of a submission on a cluster node, in the run store that all machines share.

On the local machine, the command `work` does the same.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

from dmlcore.cli import workers
from dmlcore.jobs import launch
from dmlcore.jobs.backends.submission import ALONE, ProcessPlace, Submission
from dmlcore.processes import ProcessError, apart, local
from dmlcore.storage import atomic_files, locks
from dmlcore.storage.run_directory import LOCK
from dmlcore.storage.runs import Run, RunError
from dmlcore.storage.task import JobError, Progress

_DATA = os.environ.get("DML_DATA")  # as set on this node
HANDOVER = 60.0  # seconds that the monitoring process may take to pass the lock of the run to this node
log = logging.getLogger("dmlcore")


class Interrupted(BaseException):
    """Error that ends training without a final state, so that the monitoring process submits the run again."""


def carry_out(wanted: Submission, place: ProcessPlace = ALONE) -> None:
    """Execute a submission in this process, which may have executed others before, but executes only one at a time.

    Args:
        wanted: The submission.
        place: Rank of this process and network address of its node. Rank 0 executes the submission; the other processes
            only take part in training the run.

    Raises:
        JobError: This node does not see the run store or its locks.
    """
    run = Run(Path(wanted.store) / wanted.run)
    _require_store(wanted)
    os.environ["DML_RUNS"] = wanted.store
    if data := _DATA or wanted.data:
        os.environ["DML_DATA"] = data
    torch.set_num_threads(wanted.cpus * place.local_size)
    if place.rank:
        _follow(wanted, place)
        return
    _require_locks(wanted, run)
    with _log_to(run), locks.ProcessLock(wanted.lock_file), suppress(Interrupted):
        _await_lock(run)
        if wanted.task == "train":
            workers.train_now(run, _lead(wanted, place) if wanted.processes > 1 else None)
        else:
            _execute_job(launch.Job(run), wanted)


@contextmanager
def _log_to(run: Run) -> Iterator[None]:
    """Within this context, append the log records of this process to the log of the run."""
    before = list(log.handlers)
    workers.log_to(run)
    try:
        yield
    finally:
        for handler in [each for each in log.handlers if each not in before]:
            log.removeHandler(handler)
            handler.close()


def _require_store(wanted: Submission) -> None:
    """Raise JobError unless this node sees the submission's files."""
    with suppress(OSError):
        if wanted.lock_file.read_text() == wanted.token:
            return
    raise JobError(
        f"node {platform.node()} does not see the run store {wanted.store} of {wanted.host}: keep the runs in a folder "
        "that all machines mount at the same path, named by --runs or DML_RUNS"
    )


def _require_locks(wanted: Submission, run: Run) -> None:
    """Raise JobError unless this node sees the lock of the run, which the monitoring process holds."""
    if not locks.holder(run.path / LOCK):
        raise JobError(
            f"node {platform.node()} does not see that {wanted.host} holds the lock of {run.id}: unless the process "
            f"there was killed, mount {wanted.store} on all machines with locks that they share (NFS without nolock "
            "and local_lock, Lustre with flock)"
        )


def _await_lock(run: Run) -> None:
    """Wait until the monitoring process has released the lock of the run."""
    until = time.monotonic() + HANDOVER
    while locks.holder(run.path / LOCK) and time.monotonic() < until:
        time.sleep(0.05)


def _execute_job(job: launch.Job, wanted: Submission) -> None:
    asked = job.state()
    if asked is None or asked.state != "queued":  # cancelled before it started
        return

    def work(progress: Progress[launch.JobState]) -> launch.JobState:
        progress.report("working")
        return progress.finished(workers.run_job(job.run, wanted.task, wanted.settings, progress))

    try:
        job.execute(work, asked)
    except KeyboardInterrupt:
        log.info("cancelled")
    except Exception:  # recorded as the state of the job
        log.exception("unexpected error")


@contextmanager
def _lead(wanted: Submission, place: ProcessPlace) -> Iterator[None]:
    """Within this context, belong to the process group of a run as rank 0.

    Raises:
        RunError: An error of another process, which ends the run.
        Interrupted: Another process was lost.
    """

    def tell(port: int) -> None:
        atomic_files.replace_json(wanted.meeting_file, [place.address, port])

    wanted.meeting_file.unlink(missing_ok=True)  # published by an earlier attempt of a requeued job
    with apart.set_rank(0, wanted.processes, place.local_rank, place.local_size):
        try:
            with local.take_part(lambda: apart.lead(place.address, tell)):
                yield
        except ProcessError as error:
            if reason := apart.failure():
                raise RunError(reason) from error
            log.warning("%s", error)
            raise Interrupted from error


def _follow(wanted: Submission, place: ProcessPlace) -> None:
    """Take part in training the run as a rank other than 0, until the run ends.

    An error in this process is reported to rank 0. The function returns normally also then, so an error that the engine
    observes always means that a process was lost.
    """

    def ask() -> tuple[str, int] | None:
        with suppress(OSError, ValueError):
            host, port = json.loads(wanted.meeting_file.read_text())
            return str(host), int(port)
        return None

    def fail(reason: str) -> None:
        apart.report_failure(f"{reason} (on {platform.node()})")

    from dmlcore.training import loop

    try:
        with (
            apart.set_rank(place.rank, wanted.processes, place.local_rank, place.local_size),
            local.take_part(lambda: apart.follow(ask), fail),
        ):
            loop.follow()
    except ProcessError as error:
        log.info("%s", error)
    except Exception:
        log.exception("unexpected error")
