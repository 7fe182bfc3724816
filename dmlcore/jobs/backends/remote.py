"""Work on a run that an engine does on some node, attended by a process of this machine.

The process holds the lock of the run and alone writes into its directory. The node works in a folder of its own, made
for this one try (`order`), on a file system that both see or at an address; what is new there is carried over a few
times a second. A node that is lost, or only cut off, can so spoil nothing: the next try begins in a new folder with the
last checkpoint that came through.
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
from dmlcore.jobs.backends.mirror import Mirror, seed
from dmlcore.jobs.backends.order import Begun, Lost, NodeOutcome, Order
from dmlcore.spec import RunSpec
from dmlcore.storage import atomic_files, leftovers, locks
from dmlcore.storage.run_directory import LOCK, STATE
from dmlcore.storage.runs import RUN_ID, Run, RunError, RunStore
from dmlcore.storage.task import JobError, ProgressState

AWAY = ".away"  # in a run store: the folders of what is done elsewhere
AT_ONCE = 64  # tasks of one process given to an engine at a time; it decides which of them run
LOSSES = 3  # nodes lost without a further checkpoint, after which it is no accident
LOOK = 1.0  # seconds between two looks at an address


class Engine(Protocol):
    """What begins work on nodes: Ray, SLURM."""

    title: str

    def submit(self, folder: str, spec: RunSpec, processes: int) -> Any:
        """Have `order.ON_NODE` called with the folder on some node, once there is room; what names this work.

        processes: in so many at once, each of which is told its place.
        """

    def ended(self, work: Any) -> bool:
        """Whether it is over, however, or can come to no good end, as one of its processes is gone."""

    def reason(self, work: Any) -> tuple[str, bool]:
        """Why it ended without an outcome, and whether its node was lost, so that it may be tried again."""

    def withdraw(self, work: Any) -> None:
        """Forget work that has not begun, and end what is left of work that lost a process."""

    def release(self, work: Any) -> None:
        """Free what work that is over still holds."""

    def waits_for(self, spec: RunSpec, processes: int) -> str:
        """What work that has not begun waits for, in words."""


class RemoteBackend:
    """A cluster behind its engine."""

    at_once = AT_ONCE

    def __init__(self, choice: BackendChoice, engine: Engine) -> None:
        self.choice, self.engine = choice, engine

    def begin(self, run: Run, task: str, settings: str = "") -> RemoteWork:
        """Give the task to the engine; raises JobError, locks.Busy, OSError."""
        return RemoteWork(run, task, settings, self.choice, self.engine)


class RemoteWork:
    """One task on one run; `standing` and at the end `outcome` say where it stands."""

    def __init__(self, run: Run, task: str, settings: str, choice: BackendChoice, engine: Engine) -> None:
        self.run, self.choice, self.engine = run, choice, engine
        self.outcome: NodeOutcome | None = None
        self.standing = ProgressState()
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
            if not locks.held_here(run.path / LOCK):
                held.enter_context(run.lock())
            if task == "train" and run.state().state != "queued":
                launch.prepare_resume(run, choice.text)
            elif task == "train":
                run.update(backend=choice.text)  # where a resume goes, too
            self._try()
            self._held = held.pop_all()

    def cancel(self) -> None:
        """Let it end after its current step; what has not begun ends at once."""
        self._cancelled = True

    def over(self) -> bool:
        """Carry over what is new, and ask whether it has ended; then the run is free again."""
        if self.outcome is None:
            try:
                self._look()
            except BaseException:
                self._held.close()
                raise
            if self.outcome is not None:
                self._held.close()
        return self.outcome is not None

    def _look(self) -> None:
        # Asked before the last look at the files, so that nothing comes after it.
        ended = self.engine.ended(self._work)
        if self._address and not ended and time.monotonic() - self._looked < LOOK:
            return
        self._looked = time.monotonic()
        try:
            if self._address:
                self._address.fetch(self._root)
        except JobError as error:  # nothing that a node of ours has sent: somebody else writes there
            self.engine.withdraw(self._work)
            self._end(NodeOutcome(state="failed", message=str(error)))
            return
        lost = order.read(self._root, Lost)  # before the outcome: the one who fails says so before the others are lost
        outcome = order.read(self._root, NodeOutcome)
        begun = order.read(self._root, Begun)
        self._mirror.carry()
        self._tell(begun)
        if outcome is None and (self._cancelled or self._asked_to_end()):
            self._cancelled = True
            if begun is None:
                self.engine.withdraw(self._work)
                outcome = NodeOutcome(state="cancelled", message="cancelled before it began")
            else:
                self._pass_on_cancel()
        if outcome is None and (ended or lost):
            outcome = self._lost(lost)
        if outcome is not None:
            self._end(outcome)

    def _try(self) -> None:
        """Give it to the engine, in a new folder with what there is of the run."""
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
        seed(self.run.path, directory)
        self._bring_start(store)
        order.write(self._root, self._order)
        self._mirror, self._address, folder = Mirror(directory, self.run.path), None, str(self._root)
        if is_address(self.choice.folder):
            folder = f"{self.choice.folder.rstrip('/')}/{name}"
            self._address = Address(folder)
            self._address.send(self._root)
            self._address.know_all()
        self._work = self.engine.submit(folder, self.run.spec, self._order.processes)

    def _bring_start(self, store: Path) -> None:
        """Send the run whose backbone this one starts with along, if it is one of the same store."""
        named = store / (self.run.spec.model.start or ".")
        if named.parent == store and RUN_ID.fullmatch(named.name) and named.exists():
            start = RunStore(store).open(named.name)
            seed(start.path, self._root / start.id)
            atomic_files.replace_json(self._root / start.id / STATE, start.state().model_dump())

    def _tell(self, begun: Begun | None) -> None:
        """Carry over where it stands."""
        where = f" on {begun.host}" if begun else ""
        there = Run(self._root / self.run.id)
        if self._order.task != "train":
            state = launch.Job(there).state() if begun else None
            standing = state or ProgressState(message=self._waits_for())
            self.standing = standing.replace(message=standing.message + where)
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
                self.run.update(**changes, pid=0)  # it ends by its file: this process may attend to others too

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
        """What comes of work that ended without an outcome, or says what it lost; None: it is tried again."""
        reason, lost = (known.message, True) if known else self.engine.reason(self._work)
        self.engine.withdraw(self._work)
        if self._cancelled:
            return NodeOutcome(state="cancelled", message="cancelled")
        step = self.run.state().step
        self._losses = 1 if step > self._last_step else self._losses + 1
        self._last_step = step
        if not lost or self._losses > LOSSES:
            tried = f"; {self._losses} tries in a row were lost" if lost else ""
            launch.note(self.run, f"failed: {self.engine.title}: {reason}{tried}")
            return NodeOutcome(state="failed", message=f"{self.engine.title}: {reason}{tried}")
        launch.note(self.run, f"{self.engine.title}: {reason}; it goes on from the last checkpoint elsewhere")
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
        self.outcome = outcome

    def _clear(self) -> None:
        self.engine.release(self._work)
        if self._address:
            self._address.remove()
        with contextlib.suppress(OSError):  # a node that was cut off may still be writing: swept later
            leftovers.remove(self._root)


def sweep(store: Path, run: Run) -> None:
    """Remove what a killed process left of work on this run, whose lock we hold, and on runs that are gone."""
    for path in (store / AWAY).glob("*.*"):
        name = path.name.partition(".")[0]
        if name == run.id or not (store / name).exists():
            with contextlib.suppress(OSError):
                leftovers.remove(path)


def cancel_file(task: str, run: Run) -> str:
    """Name of the file, below the folder of an order, by which a task is asked to end."""
    file = run.cancel_file if task == "train" else launch.Job(run).cancel_file
    return str(file.relative_to(run.path.parent))
