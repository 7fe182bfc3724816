"""Trainings as detached processes: launch, resume, cancel, evaluate, project, weigh; every call returns at once.

A job takes a run, never a command. It outlives its launcher, even one killed with -9; what it does is read from the run
directory, and this module holds nothing. It waits for its turn on the device in its own process (`turns`). What was
asked for beside trainings stands in `.queue/asked/RUN.json` until it is over, so that `recovery` can ask again.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from dmlcore.inspection.maps.settings import Settings
from dmlcore.jobs import device_queue
from dmlcore.spec import RunSpec
from dmlcore.storage import atomic_files, locks
from dmlcore.storage.home import HOME
from dmlcore.storage.run_directory import LOCK, LOG, kept
from dmlcore.storage.runs import START_GRACE, Run, RunError, RunStore

MOST_QUEUED = 32  # runs waiting or working in one store, and as many jobs: each that waits is a process of some 50 MB
ASKED = Path(".queue") / "asked"
Task = Literal["train", "evaluate", "project", "weigh", "snapshots", "project-over-training", "true-step"]


class Asked(BaseModel):
    """A job on a trained run that was asked for and is not over; unknown keys of later releases are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    task: Task
    more: tuple[str, ...] = ()  # further arguments of its process
    queued: float = 0.0  # time.monotonic(), and in which boot
    boot: str = ""

    def on_its_way(self) -> bool:
        """Whether it was asked for so lately that its process may not hold the lock yet."""
        return locks.elapsed(self.queued, self.boot) < START_GRACE


class JobError(RuntimeError):
    """A job that cannot be started; the message says why and what to do."""


def launch(spec: RunSpec, store: RunStore, *, check: Callable[[RunSpec], object] | None = None) -> str:
    """Create a run and queue it, in a process of its own that trains it when its turn comes; return the run id.

    Raises DataError if the data set is not there, JobError while MOST_QUEUED runs are waiting or working, and what
    check(spec) raises. What only the worker can find (it alone imports torch) becomes the state "failed".
    """
    from dmlcore import data  # late: numpy comes with it, and no command needs it to begin with

    if data.available(spec.data.name, spec.data.root) is None:
        data.locate(spec.data.name, spec.data.root)  # raises, and says where it looked
    if check:
        check(spec)
    busy = [run.id for run in active(store)]
    if len(busy) >= MOST_QUEUED:
        raise JobError(f"{len(busy)} runs are waiting or working already; cancel one or wait: {', '.join(busy)}")
    run = store.create(spec)
    start(run, "train")
    return run.id


def active(store: RunStore) -> list[Run]:
    """The runs that wait or work, newest first."""
    recorded = store.find(lambda run_id, brief: True, state=("queued", "running"))
    return [run for run in recorded if run.status() in ("queued", "running")]


def resume(run: Run) -> None:
    """Go on from the last checkpoint of a lost, cancelled or failed run; raises JobError if it is in use or done."""
    with _idle(run):
        if run.state().on_its_way():  # asked here, under the lock: of two who resume at once one does
            raise JobError(f"{run.id} is waiting or about to start already")
        prepare_resume(run)
    start(run, "train")


def prepare_resume(run: Run) -> None:
    """Put a run whose lock we hold back in the queue; raises JobError if it is done."""
    if run.state().state == "done":
        raise JobError(f"{run.id} is done; there is nothing left to resume")
    run.withdraw_cancel()
    device_queue.withdraw_hurry(run)
    run.update(state="queued", queued=time.monotonic(), boot=locks.boot(), message="")


def cancel(run: Run) -> None:
    """End a run after its current step, keeping everything; a run that nobody works on is cancelled here and now."""
    if run.state().state not in ("queued", "running"):
        return
    run.request_cancel()
    try:
        with run.lock(wait=0.0):
            if run.state().state in ("queued", "running"):
                run.update(state="cancelled", message="cancelled")
    except locks.Busy:
        # The kernel names the holder of the lock; it is ours if it is also the process the state tells of.
        owner, state = locks.holder(run.path / LOCK), run.state()
        if owner and owner == state.pid:
            locks.terminate(owner, state.started)


def evaluate(run: Run) -> None:
    """Embed and score the test part with the best weights so far; raises JobError while the run is in use."""
    _ask(run, "evaluate")


def project(run: Run, settings: Settings | None = None) -> None:
    """Make the map of the newest embeddings (default: t-SNE, seed of the run); raises JobError while the run is in use
    or before an evaluation."""
    if run.embeddings() is None:
        raise JobError(f"{run.id} has no embeddings yet; evaluate it first")
    _ask(run, "project", *_with(settings))


def project_over_training(run: Run, settings: Settings | None = None) -> None:
    """Make one map of all kept checkpoints, embedding those that lack it; raises JobError while in use or without."""
    if not kept(run.path):
        raise JobError(f"{run.id} has kept no checkpoints; train one with schedule.keep_every, for example 50")
    _ask(run, "project-over-training", *_with(settings))


def stop_projecting(run: Run) -> None:
    """End the making of a map, of which nothing is kept; what else works on the run is left alone."""
    known = asked(run)
    if known and known.task in ("project", "project-over-training"):  # it may still wait for its turn
        pid = locks.holder(run.path / LOCK)
        if pid not in (0, os.getpid()):
            locks.terminate(pid, locks.start_time(pid))
        over(run)
        return
    try:
        record = atomic_files.read_json(run.path / "map.json")
        pid, started = int(record["pid"]), int(record["started"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return
    if pid == locks.holder(run.path / LOCK):
        locks.terminate(pid, started)


def weigh(run: Run) -> None:
    """Write where the pooling looks in each test image; raises JobError while in use or before an evaluation."""
    if run.embeddings() is None:
        raise JobError(f"{run.id} has no embeddings yet; evaluate it first")
    _ask(run, "weigh")


def snapshots(run: Run) -> None:
    """Embed the test part with each kept checkpoint that lacks it; raises JobError while in use or without any."""
    if not kept(run.path):
        raise JobError(f"{run.id} has kept no checkpoints; train one with schedule.keep_every, for example 50")
    _ask(run, "snapshots")


def true_step(run: Run, question: str) -> None:
    """Step the weights once on a triplet, by each loss of a question (`inspection.true_step`, as JSON); see `weigh`."""
    if run.embeddings() is None:
        raise JobError(f"{run.id} has no embeddings yet; evaluate it first")
    _ask(run, "true-step", "--settings", question)


def asked(run: Run) -> Asked | None:
    """The job on a run that was asked for and is not over."""
    try:
        return Asked.model_validate_json(_asked_at(run).read_bytes())
    except (OSError, ValidationError):
        return None


def all_asked(store: RunStore) -> list[Run]:
    """The runs with such a job, those that are gone left out."""
    asked = []
    for path in sorted((store.root / ASKED).glob("*.json")):
        try:
            asked.append(store.open(path.stem))
        except RunError:
            path.unlink(missing_ok=True)
    return asked


def over(run: Run) -> None:
    """Forget the job on a run, at its end."""
    _asked_at(run).unlink(missing_ok=True)


def _ask(run: Run, task: Task, *more: str) -> None:
    """Start a job and note it; raises JobError while the run is in use, or MOST_QUEUED jobs wait or work."""
    under_way = [other for other in all_asked(RunStore(run.path.parent)) if other.id != run.id and _under_way(other)]
    if len(under_way) >= MOST_QUEUED:
        raise JobError(f"{len(under_way)} jobs are waiting or working already; wait until some are over")
    with _idle(run):
        if (known := asked(run)) and known.on_its_way():
            raise JobError(f"{run.id}: a job on it is about to start already")
        begin(run, Asked(task=task, more=more))


def begin(run: Run, job: Asked) -> None:
    """Note a job as asked for now and start it; for the holder of the lock of the run."""
    noted = job.model_copy(update={"queued": time.monotonic(), "boot": locks.boot()})
    _asked_at(run).parent.mkdir(parents=True, exist_ok=True)
    atomic_files.replace_json(_asked_at(run), noted.model_dump())
    start(run, job.task, *job.more)


def _under_way(run: Run) -> bool:
    known = asked(run)
    return known is not None and (run.alive() or known.on_its_way())


def _asked_at(run: Run) -> Path:
    return run.path.parent / ASKED / f"{run.id}.json"


@contextmanager
def _idle(run: Run) -> Iterator[None]:
    """Hold the lock of the run for a moment, so that only one caller changes it."""
    try:
        with run.lock(wait=0.5):
            yield
    except locks.Busy as busy:
        raise JobError(f"{run.id}: something is working on it already; wait for it, or cancel it") from busy


def _with(settings: Settings | None) -> tuple[str, ...]:
    return ("--settings", settings.to_json()) if settings else ()


def start(run: Run, task: Task, *more: str) -> subprocess.Popen[bytes]:
    """Start `python -m dmlcore work TASK RUN` in its own session, with log.txt as its output."""
    command = [sys.executable, "-m", "dmlcore", "work", task, run.id, "--runs", str(run.path.parent), *more]
    with open(run.path / LOG, "ab") as log:
        process = subprocess.Popen(
            command, cwd=HOME, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    threading.Thread(target=process.wait, daemon=True).start()  # leave no zombie behind in a long-lived server
    return process
