"""Execution of a task on the nodes of a cluster, monitored by a process on this machine.

Nodes execute tasks in the run store, as workers of this machine do, so the store must be on a file system that all
machines share, with locks. While a task is queued, the monitoring process holds the lock of the run. Once the node has
locked its submission, it gets the lock of the run and writes all results. A task whose node has left without a result
is submitted again and continues from the last checkpoint, once the lock of the node is released.
"""

from __future__ import annotations

import contextlib
import os
import platform
import secrets
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

from dmlcore.jobs import launch
from dmlcore.jobs.backends.choice import BackendChoice
from dmlcore.jobs.backends.submission import NODES, Submission
from dmlcore.spec import RunSpec
from dmlcore.storage import leftovers, locks
from dmlcore.storage.run_directory import LOCK
from dmlcore.storage.runs import Run, RunState
from dmlcore.storage.task import BUSY, JobError, Task

# maximum number of tasks that one process submits at a time; the cluster decides which of them execute
MAX_CONCURRENT = 64
MAX_LOSSES = 3  # number of consecutive losses without a new checkpoint that are retried; after one more, the run fails
# seconds that a lost node may keep the lock of its run; an NFS server releases it after about 90 s
LOCK_PATIENCE = 300.0


class Engine(Protocol):
    """Interface to the scheduler of a cluster: Ray or SLURM."""

    title: str

    def submit(self, submission: Submission, spec: RunSpec) -> Any:
        """Submit a call of `carry_out` in module `submission.ON_NODE`, to be executed once resources are free.

        Args:
            submission: Argument of the call; each of its processes is also passed its rank.
            spec: Spec of the run.

        Returns:
            Handle of the submitted work.
        """

    def ended(self, work: Any) -> bool:
        """Return True once the work has ended or one of its processes was lost."""

    def reason(self, work: Any) -> tuple[str, bool]:
        """Return why the work ended without a result, and True if a node was lost, so that a retry makes sense."""

    def withdraw(self, work: Any) -> None:
        """Cancel queued work; if a process was lost, end the remaining ones."""

    def release(self, work: Any) -> None:
        """Free the resources that ended work still occupies."""

    def waits_for(self, spec: RunSpec, processes: int) -> str:
        """Return a message about the resources that queued work is waiting for."""


class RemoteBackend:
    """Backend that executes tasks on a cluster through an engine."""

    max_concurrent = MAX_CONCURRENT

    def __init__(self, choice: BackendChoice, engine: Engine) -> None:
        self.choice, self.engine = choice, engine

    def begin(self, run: Run, task: str, settings: str = "") -> RemoteWork:
        """Submit the task to the engine and return its handle; raises JobError, locks.Busy, OSError."""
        return RemoteWork(run, task, settings, self.choice, self.engine)


class RemoteWork:
    """Handle of one remote task on one run; `message` is its result once it has ended."""

    def __init__(self, run: Run, task: str, settings: str, choice: BackendChoice, engine: Engine) -> None:
        self.run, self.choice, self.engine, self.message = run, choice, engine, ""
        self.task: Task[Any] = run if task == "train" else launch.Job(run)
        self._name, self._settings = task, settings
        self._over, self._losses, self._last_step, self._left_since = False, 0, -1, 0.0
        self._reason: tuple[str, bool] | None = None
        self._held = ExitStack()
        self._held.enter_context(run.lock())
        try:
            self._queue()
            self._submit()
        except BaseException:
            self._held.close()
            raise

    def cancel(self) -> None:
        """Request that the task stop after its current step."""
        self.task.request_cancel()

    def has_ended(self) -> bool:
        """Query the engine and pass the lock of the run to the node or back; return True once the task has ended."""
        if not self._over:
            try:
                self._over = self._poll_queued() if locks.is_held_here(self.run.path / LOCK) else self._poll_running()
            except BaseException:
                self._held.close()
                raise
        return self._over

    def _queue(self) -> None:
        """Record the task as queued; a task that is queued already keeps its cancellation request."""
        state = self._state()
        if state is not None and state.state == "queued":
            # process ID 0, so that a cancellation sends no signal to this process, which may monitor other tasks too
            self.task.record(state.replace(backend=self.choice.text, pid=0))
        elif isinstance(self.task, Run):
            launch.prepare_resume(self.task, self.choice.text)
        else:
            more = ("--settings", self._settings) if self._settings else ()
            asked = {"task": self._name, "more": more, "backend": self.choice.text}
            self.task.queue(launch.JobState.model_validate(asked))

    def _submit(self) -> None:
        """Start a new attempt; the caller holds the lock of the run. Records and raises JobError if that fails."""
        store = self.run.path.parent
        remove_stale(store)
        state = self._state()
        self._submission = Submission(
            store=str(store),
            run=self.run.id,
            task=self._name,
            settings=self._settings,
            token=secrets.token_hex(8),
            host=platform.node(),
            cpus=self.choice.cpus,
            processes=state.processes if isinstance(state, RunState) else 1,
            data=os.environ.get("DML_DATA", ""),
        )
        leftovers.remove(self._submission.folder)
        self._submission.folder.mkdir(parents=True)
        self._submission.lock_file.write_text(self._submission.token)
        try:
            self._work, self._reason = self.engine.submit(self._submission, self.run.spec), None
        except JobError as error:
            self.task.record(state.replace(state="failed", message=str(error)))
            raise

    def _poll_queued(self) -> bool:
        """Wait for a node, and pass the lock of the run to it once it is there; this process holds the lock."""
        state = self._state()
        if state is None or self.task.cancel_requested():
            self.engine.withdraw(self._work)
            return self._end("cancelled", "cancelled before it started")
        if locks.holder(self._submission.lock_file):
            self.task.record(state.queued_now())
            self._held.close()
        elif self.engine.ended(self._work):
            return self._retry()
        elif state.message != (message := self.engine.waits_for(self.run.spec, self._submission.processes)):
            self.task.record(state.replace(message=message))
        return False

    def _poll_running(self) -> bool:
        """Wait for the end of the task, and take the lock back if the node has left without a result."""
        ended = self.engine.ended(self._work)
        if not ended and locks.holder(self._submission.lock_file):
            return False
        if self._is_finished():
            return ended and self._clear()
        if ended and self._reason is None:
            self._reason, self._left_since = self.engine.reason(self._work), time.monotonic()
            self.engine.withdraw(self._work)
        try:
            self._held.enter_context(self.run.lock(wait=0.0))
        except locks.Busy:
            if not ended or time.monotonic() - self._left_since < LOCK_PATIENCE:
                return False
            self.message = f"{self.engine.title}: the node was lost, but still holds the lock of {self.run.id}"
            launch.append_warning(self.run, self.message)
            return self._clear()
        if self._is_finished():
            self._held.close()
            return self._clear()
        self.task.record(self._state().queued_now())
        return False

    def _state(self) -> Any:
        """Return the recorded state.

        The file is opened each time, because NFS then looks for a new version, whereas the cache of `Run.state`
        compares attributes that NFS may report late.
        """
        return Task.state(self.task)

    def _is_finished(self) -> bool:
        state = self._state()
        self.message = state.message if state else ""
        return state is None or state.state not in BUSY

    def _retry(self) -> bool:
        """Submit a task whose work has ended without a result again, or record that it failed."""
        reason, lost = self._reason or self.engine.reason(self._work)
        self.engine.withdraw(self._work)
        step = self.run.state().step
        self._losses = 1 if step > self._last_step else self._losses + 1
        self._last_step = step
        if not lost or self._losses > MAX_LOSSES:
            tried = f"; {self._losses} attempts in a row failed" if lost else ""
            launch.append_warning(self.run, f"failed: {self.engine.title}: {reason}{tried}")
            return self._end("failed", f"{self.engine.title}: {reason}{tried}")
        launch.append_warning(self.run, f"{self.engine.title}: {reason}; resuming from the last checkpoint elsewhere")
        self.engine.release(self._work)
        self._submit()
        return False

    def _end(self, state: str, message: str) -> bool:
        """Record the end of a task that no node executes."""
        if before := self._state():
            self.task.record(before.replace(state=state, message=message))
        self.message = message
        self._held.close()
        return self._clear()

    def _clear(self) -> bool:
        """Free the resources of the ended work and remove its files; return True."""
        self.engine.release(self._work)
        with contextlib.suppress(OSError):
            leftovers.remove(self._submission.folder)
        return True


def remove_stale(store: Path) -> None:
    """Remove the submissions of deleted runs, left by monitoring processes that were killed."""
    for path in (store / NODES).glob("*"):
        if not (store / path.name).exists():
            with contextlib.suppress(OSError):
                leftovers.remove(path)
