"""Execution of a task on a cluster node, monitored by a process on this machine.

The monitoring process holds the lock of the run and is the only one that writes to the run directory. The node works in
a separate folder, which is created for each attempt (see `order`) on a shared file system or at a remote address. New
files are copied from there to the run directory a few times per second. A lost or disconnected node therefore cannot
damage the run: the next attempt starts in a new folder from the last checkpoint received.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

from dmlcore.jobs import launch
from dmlcore.jobs.backends import order
from dmlcore.jobs.backends.address import Address, is_address
from dmlcore.jobs.backends.choice import BackendChoice
from dmlcore.jobs.backends.mirror import Mirror, copy_run
from dmlcore.jobs.backends.order import Begun, Lost, NodeOutcome, Order
from dmlcore.spec import RunSpec
from dmlcore.storage import atomic_files, leftovers, locks
from dmlcore.storage.run_directory import LOCK, STATE
from dmlcore.storage.runs import RUN_ID, Run, RunError, RunStore
from dmlcore.storage.task import JobError, ProgressState

AWAY = ".away"  # folder in a run store that contains one folder per remote attempt
# maximum number of tasks that one process submits at a time; the cluster decides which of them execute
MAX_CONCURRENT = 64
MAX_LOSSES = 3  # number of consecutive losses without a new checkpoint that are retried; after one more, the run fails
POLL_INTERVAL = 1.0  # seconds between two polls of a remote address


class Engine(Protocol):
    """Interface to the scheduler of a cluster: Ray or SLURM."""

    title: str

    def submit(self, folder: str, spec: RunSpec, processes: int) -> Any:
        """Submit a call of `carry_out` in module `order.ON_NODE`, to be executed once the cluster has free resources.

        Args:
            folder: Path or address of the order's folder, passed to the call.
            spec: Spec of the run.
            processes: Number of processes to start together; each is passed its rank.

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
    """Handle of one remote task on one run.

    `progress` is the current state of a job; `result` is the outcome of the task, or None until it has ended.
    """

    def __init__(self, run: Run, task: str, settings: str, choice: BackendChoice, engine: Engine) -> None:
        self.run, self.choice, self.engine = run, choice, engine
        self.result: NodeOutcome | None = None
        self.progress = ProgressState()
        self._order = Order(
            run=run.id,
            task=task,
            settings=settings,
            cpus=choice.cpus,
            processes=run.state().processes if task == "train" else 1,
            data=os.environ.get("DML_DATA", ""),
        )
        self._losses, self._last_step, self._cancelled, self._looked = 0, -1, False, 0.0
        with ExitStack() as held:
            if not locks.is_held_here(run.path / LOCK):
                held.enter_context(run.lock())
            if task == "train" and run.state().state != "queued":
                launch.prepare_resume(run, choice.text)
            elif task == "train":
                run.update(backend=choice.text)  # recorded so that the run is resumed on the same backend
            self._try()
            self._held = held.pop_all()

    def cancel(self) -> None:
        """Request that the task stop after its current step; `has_ended` passes the request on to the node."""
        self._cancelled = True

    def has_ended(self) -> bool:
        """Copy new files to the run and query the engine; return True once the task has ended and the lock is free."""
        if self.result is None:
            try:
                self._look()
            except BaseException:
                self._held.close()
                raise
            if self.result is not None:
                self._held.close()
        return self.result is not None

    def _look(self) -> None:
        # Query the engine before the files are copied for the last time, so that no file is missed.
        ended = self.engine.ended(self._work)
        if self._address and not ended and time.monotonic() - self._looked < POLL_INTERVAL:
            return
        self._looked = time.monotonic()
        try:
            if self._address:
                self._address.fetch(self._root)
        # Nodes send no files that raise this error, so another program must have written to the address.
        except JobError as error:
            self.engine.withdraw(self._work)
            self._end(NodeOutcome(state="failed", message=str(error)))
            return
        # Read the loss before the result: a failing process writes its result before the others notice that it is lost.
        lost = order.read(self._root, Lost)
        outcome = order.read(self._root, NodeOutcome)
        begun = order.read(self._root, Begun)
        self._mirror.copy_new_files()
        self._tell(begun)
        if outcome is None and (self._cancelled or self._asked_to_end()):
            self._cancelled = True
            if begun is None:
                self.engine.withdraw(self._work)
                outcome = NodeOutcome(state="cancelled", message="cancelled before it started")
            else:
                self._pass_on_cancel()
        if outcome is None and (ended or lost):
            outcome = self._lost(lost)
        if outcome is not None:
            self._end(outcome)

    def _try(self) -> None:
        """Start a new attempt: copy the run into a new folder and submit the task to the engine."""
        store = self.run.path.parent
        sweep(store, self.run)
        name = f"{self.run.id}.{secrets.token_hex(4)}"
        shared = "" if is_address(self.choice.folder) else self.choice.folder
        self._root = Path(shared or store / AWAY).expanduser().resolve() / name
        directory = self._root / self.run.id
        directory.mkdir(parents=True)
        state = self.run.state()
        queued = state.replace(state="queued", message="", backend="") if self._order.task == "train" else state
        atomic_files.replace_json(directory / STATE, queued.model_dump())
        copy_run(self.run.path, directory)
        self._bring_start(store)
        order.write(self._root, self._order)
        self._mirror, self._address, folder = Mirror(directory, self.run.path), None, str(self._root)
        if is_address(self.choice.folder):
            folder = f"{self.choice.folder.rstrip('/')}/{name}"
            self._address = Address(folder)
            self._address.send(self._root)
            self._address.mark_all_fetched()
        self._work = self.engine.submit(folder, self.run.spec, self._order.processes)

    def _bring_start(self, store: Path) -> None:
        """Copy the run that provides the initial backbone, if it is in the same store, to the order's folder."""
        named = store / (self.run.spec.model.start or ".")
        if named.parent == store and RUN_ID.fullmatch(named.name) and named.exists():
            start = RunStore(store).open(named.name)
            copy_run(start.path, self._root / start.id)
            atomic_files.replace_json(self._root / start.id / STATE, start.state().model_dump())

    def _tell(self, begun: Begun | None) -> None:
        """Copy the progress on the node to the state of the run or, for a job, to `progress`.

        While the work is queued, the message says which resources it waits for.
        """
        where = f" on {begun.host}" if begun else ""
        there = Run(self._root / self.run.id)
        if self._order.task != "train":
            state = launch.Job(there).state() if begun else None
            progress = state or ProgressState(message=self._waits_for())
            self.progress = progress.replace(message=progress.message + where)
            return
        with contextlib.suppress(RunError):
            now, new = self.run.state(), there.state()
            if begun and new.state != "queued":
                device = new.device + where if new.device else ""
                seen = new.model_dump(include={"step", "steps", "seconds", "message"})
                changes = seen | {"state": "running", "device": device}
            else:
                changes = {"message": self._waits_for()}
            if now.pid or any(getattr(now, key) != value for key, value in changes.items()):
                # Record pid 0, so that a cancellation uses the marker file and sends no signal to this process, which
                # may monitor other tasks too.
                self.run.update(**changes, pid=0)

    def _waits_for(self) -> str:
        return self.engine.waits_for(self.run.spec, self._order.processes)

    def _asked_to_end(self) -> bool:
        return self._order.task == "train" and self.run.cancel_requested()

    def _pass_on_cancel(self) -> None:
        name = cancel_file(self._order.task, Run(self._root / self.run.id))
        if self._address:
            self._address.write(name)
        else:
            (self._root / name).parent.mkdir(parents=True, exist_ok=True)
            (self._root / name).touch()

    def _lost(self, known: Lost | None) -> NodeOutcome | None:
        """Handle work that ended without a result or lost a process.

        Args:
            known: Loss reported by rank 0, if any; otherwise the engine is queried for the reason.

        Returns:
            The final result, or None if a new attempt was started.
        """
        reason, lost = (known.message, True) if known else self.engine.reason(self._work)
        self.engine.withdraw(self._work)
        if self._cancelled:
            return NodeOutcome(state="cancelled", message="cancelled")
        step = self.run.state().step
        self._losses = 1 if step > self._last_step else self._losses + 1
        self._last_step = step
        if not lost or self._losses > MAX_LOSSES:
            tried = f"; {self._losses} attempts in a row failed" if lost else ""
            launch.append_warning(self.run, f"failed: {self.engine.title}: {reason}{tried}")
            return NodeOutcome(state="failed", message=f"{self.engine.title}: {reason}{tried}")
        launch.append_warning(self.run, f"{self.engine.title}: {reason}; resuming from the last checkpoint elsewhere")
        self._clear()
        self._try()
        return None

    def _end(self, outcome: NodeOutcome) -> None:
        if self._order.task == "train":
            state = self.run.state()
            if outcome.state == "done" and state.state == "queued":
                self.run.update(state="running")
            self.run.update(state=outcome.state, message=outcome.message, pid=0)
        self._clear()
        self.result = outcome

    def _clear(self) -> None:
        self.engine.release(self._work)
        if self._address:
            self._address.remove()
        with contextlib.suppress(OSError):  # a disconnected node may still be writing; `sweep` removes the folder later
            leftovers.remove(self._root)


def sweep(store: Path, run: Run) -> None:
    """Remove the folders left by earlier remote attempts on this run, and by attempts on runs deleted since then.

    The caller must hold the lock of the run.
    """
    for path in (store / AWAY).glob("*.*"):
        name = path.name.partition(".")[0]
        if name == run.id or not (store / name).exists():
            with contextlib.suppress(OSError):
                leftovers.remove(path)


def cancel_file(task: str, run: Run) -> str:
    """Return the path of the file that requests cancellation of a task, relative to the folder of its order."""
    file = run.cancel_file if task == "train" else launch.Job(run).cancel_file
    return str(file.relative_to(run.path.parent))
