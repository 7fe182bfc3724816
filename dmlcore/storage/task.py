"""Long work on a data set as a detached process: what it does is a file that anybody may read, one process a task."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Literal

from dmlcore.storage import atomic_files, locks
from dmlcore.storage.home import HOME

START_GRACE = 20.0  # seconds until a process that was started must hold the lock
SAY_EVERY = 0.5  # seconds between two writings of the state
WINDOW = 8.0  # seconds over which the rate is told

Word = Literal["queued", "running", "done", "failed", "cancelled"]


@dataclass(frozen=True)
class TaskState:
    """Where a task stands; done and total count bytes or images, rate is per second."""

    state: Word
    message: str = ""
    done: int = 0
    total: int | None = None
    rate: float = 0.0
    queued: float = 0.0  # monotonic clock
    started: int | None = None  # of the process, in clock ticks since boot


class Task:
    """One task in its folder: `state.json`, the lock of whoever works, a request to cancel, and the log."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def state(self) -> TaskState | None:
        """The last state that was written; None before the first, or if it cannot be read."""
        try:
            plain = json.loads((self.folder / "state.json").read_text())
            return TaskState(**{field.name: plain[field.name] for field in fields(TaskState)})
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def status(self) -> Word | Literal["never", "lost"]:
        """The state, and "lost" where a process was killed before it could write its end."""
        alive = locks.holder(self.folder / "lock") != 0  # before the state: its end is written under the lock
        state = self.state()
        if state is None:
            return "running" if alive else "never"
        if alive:
            return "running"
        if state.state == "queued" and _recent(state):
            return "queued"
        return "lost" if state.state in ("queued", "running") else state.state

    def busy(self) -> bool:
        """Whether somebody works on it, or is about to."""
        return self.status() in ("queued", "running")

    def log_tail(self, lines: int = 20) -> list[str]:
        """The last lines of the log."""
        try:
            return (self.folder / "log.txt").read_bytes()[-65536:].decode(errors="replace").splitlines()[-lines:]
        except FileNotFoundError:
            return []

    def start(self, arguments: Sequence[str]) -> None:
        """Start `python -m dmlcore ARGUMENTS` detached, whose `work` does the task; raises Busy while it is done."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with locks.ProcessLock(self.folder / "lock", wait=0.0):
            state = self.state()
            if state and state.state == "queued" and _recent(state):
                raise locks.Busy(f"{self.folder.name} is about to start already")
            (self.folder / "cancel").unlink(missing_ok=True)
            self._write(TaskState("queued", "about to start", queued=time.monotonic()))
        with open(self.folder / "log.txt", "ab") as log:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=HOME,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        threading.Thread(target=process.wait, daemon=True).start()  # leave no zombie behind in a long-lived server

    def cancel(self) -> None:
        """End it, keeping what has been done; a task that nobody works on is cancelled here and now."""
        state = self.state()
        if state is None or state.state not in ("queued", "running"):
            return
        (self.folder / "cancel").touch()
        try:
            with locks.ProcessLock(self.folder / "lock", wait=0.0):
                self._write(replace(state, state="cancelled", message="cancelled"))
        except locks.Busy:  # also a read that waits for an answer must end
            locks.terminate(locks.holder(self.folder / "lock"), state.started)

    def work(self, job: Callable[[TaskProgress], str]) -> str:
        """Do the task in this process, writing its state; returns and records what `job` says at its end.

        SIGTERM and a request to cancel end it. Raises Busy if another process is at it, and what the job raises.
        """
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        self.folder.mkdir(parents=True, exist_ok=True)
        with locks.ProcessLock(self.folder / "lock", wait=0.5):
            waiting = self.state()
            if not (waiting and _recent(waiting)):  # started by hand: an old request is void
                (self.folder / "cancel").unlink(missing_ok=True)
            progress = TaskProgress(self)
            try:
                progress.say("starting", force=True)
                message = job(progress)
            except KeyboardInterrupt:
                self._write(replace(progress.state, state="cancelled", message="cancelled; what has been done is kept"))
                raise
            except Exception as error:
                self._write(replace(progress.state, state="failed", message=str(error)))
                raise
            self._write(replace(progress.state, state="done", message=message))
            return message

    def _write(self, state: TaskState) -> None:
        atomic_files.replace_json(self.folder / "state.json", asdict(state))


class TaskProgress:
    """Tells the state of a task that is at work, a few times a second; KeyboardInterrupt once it is cancelled."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._said = 0.0
        self._seen: deque[tuple[float, int]] = deque()
        self.state = TaskState("running", started=locks.start_time(os.getpid()))

    def say(self, message: str, done: int = 0, total: int | None = None, *, force: bool = False) -> None:
        """What is being done, and how much of it is."""
        now = time.monotonic()
        if message != self.state.message:
            self._seen.clear()
            force = True
        self._seen.append((now, done))
        while self._seen[0][0] < now - WINDOW and len(self._seen) > 2:
            self._seen.popleft()
        (then, before), passed = self._seen[0], now - self._seen[0][0]
        rate = (done - before) / (now - then) if passed > 0 else 0.0
        self.state = replace(self.state, message=message, done=done, total=total, rate=rate)
        if force or now - self._said >= SAY_EVERY:
            self._said = now
            if (self._task.folder / "cancel").exists():
                raise KeyboardInterrupt
            self._task._write(self.state)


def _recent(state: TaskState) -> bool:
    """Whether the process that was started for this state may still be on its way."""
    return state.queued > 0 and 0 <= time.monotonic() - state.queued < START_GRACE
