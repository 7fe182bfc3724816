"""Background tasks that survive the process that started them: training runs, jobs on runs, studies, downloads, ...

A task is a directory: `lock` is held by the worker and is the only reliable sign of life, `state.json` is replaced
atomically, `cancel` requests cancellation, `log.txt` holds the worker's output. Workers are started by
`spawn_detached`, the only place to replace for another execution backend.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from dmlcore.storage import atomic_files, locks
from dmlcore.storage.home import HOME
from dmlcore.storage.run_directory import CANCEL, LOCK, LOG, STATE

LOCK_TIMEOUT = 20.0  # seconds that a started worker may take to acquire the lock
REPORT_INTERVAL = 0.5  # seconds between two progress updates on disk
RATE_WINDOW = 8.0  # seconds over which the rate is averaged
MAX_STATE_BYTES = 2**20  # bytes
BUSY: tuple[Literal["queued"], Literal["running"]] = ("queued", "running")
ProgressCallback = Callable[[str, float, float], object]  # called with (message, done, total) like `Progress.report`


class JobError(RuntimeError):
    """Error for a task that cannot be started; the message gives the reason and tells the user what to do."""


def _truncate(text: object) -> object:
    """Truncate an error message to 4,000 characters; return other types unchanged, since the validator rejects them."""
    return text if not isinstance(text, str) or len(text) <= 4000 else f"{text[:3999]}…"


Text = Annotated[str, BeforeValidator(_truncate)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class TaskState(BaseModel):
    """Contents of `state.json`; unknown keys written by newer releases are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    state: Literal["queued", "running", "done", "incomplete", "failed", "cancelled"] = "queued"
    message: Text = ""
    pid: Annotated[int, Field(ge=0, lt=2**31)] = 0  # process ID of the last worker
    # start time of that process in clock ticks since boot; a later process with the same ID has a different one
    started: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    # value of time.monotonic(), comparable between processes until the next reboot
    queued: Annotated[float, Field(ge=-(2**33), le=2**33)] = 0.0
    boot: Text = ""  # ID of the boot in which `queued` was measured
    backend: Text = ""  # execution backend, as parsed by `jobs.backends.choice`; "" is this machine

    def replace(self, **changes: Any) -> Self:
        """Return a copy with the given fields replaced; raises ValidationError if a value is invalid."""
        return type(self).model_validate(self.model_dump() | changes)

    def queued_now(self) -> Self:
        """Return a copy in state "queued", with the current time and boot ID as its time of queueing."""
        return self.replace(state="queued", message="", queued=time.monotonic(), boot=locks.current_boot())

    def recently_queued(self) -> bool:
        """Return True if the task was queued less than `LOCK_TIMEOUT` seconds ago."""
        return self.queued > 0 and locks.elapsed(self.queued, self.boot) < LOCK_TIMEOUT

    def is_starting(self) -> bool:
        """Return True while the task was queued so recently that its worker may not have acquired the lock yet."""
        return self.state == "queued" and self.recently_queued()


class ProgressState(TaskState):
    """State of a task that reports its progress; `rate` is the increase of `done` per second."""

    done: Amount = 0.0
    total: Amount | None = None
    rate: Annotated[float, Field(allow_inf_nan=False)] = 0.0


S = TypeVar("S", bound=TaskState)


def spawn_detached(
    arguments: Sequence[str], log: Path | None = None, settings: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start Python with `arguments` in its own process session, so that it survives this one; output goes to `log`.

    `settings` are additional environment variables.
    """
    with open(log or os.devnull, "ab") as output:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=HOME,
            # let idle OpenMP threads sleep instead of spin; see dmlcore.cli.main
            env={"OMP_WAIT_POLICY": "PASSIVE", **os.environ, **(settings or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    # reap the child, so that a long-lived server keeps no zombies
    threading.Thread(target=process.wait, daemon=True).start()
    return process


class Task(Generic[S]):
    """A task stored in a directory; reading it does not need a live worker."""

    def __init__(self, path: Path, kind: type[S]) -> None:
        self.path, self.kind = path, kind

    @property
    def state_file(self) -> Path:
        """File that holds the current state."""
        return self.path / STATE

    @property
    def cancel_file(self) -> Path:
        """Marker file whose presence requests cancellation."""
        return self.path / CANCEL

    def state(self) -> S | None:
        """Return the last recorded state, or None if it is missing or unreadable."""
        try:
            return self.kind.model_validate_json(atomic_files.read_bytes(self.state_file, MAX_STATE_BYTES))
        except (OSError, ValidationError):
            return None

    def is_alive(self) -> bool:
        """Return True if a live process holds the lock."""
        try:
            return locks.holder(self.path / LOCK) != 0
        except OSError:  # the lock file cannot be opened, so no process can hold it
            return False

    def status(self) -> str:
        """Return the state to display.

        This is the recorded state, "never" if the task was never requested, or "lost" if it should be running but no
        process holds the lock.
        """
        state = self.state()
        if state is not None and state.state not in BUSY:
            return state.state
        # Query the lock before reading the state, since a worker records its final state before it releases the lock.
        alive = self.is_alive()
        state = self.state()
        if state is None:
            return "running" if alive else "never"
        if alive or state.state not in BUSY:
            return state.state
        return "queued" if state.is_starting() else "lost"

    def is_busy(self) -> bool:
        """Return True while the task is queued or running."""
        return self.status() in BUSY

    def log_tail(self, lines: int = 20) -> list[str]:
        """Return the last lines of the log; [] if there is no log."""
        try:
            with atomic_files.open_regular(self.path / LOG, 2**63) as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - 65536))
                return file.read(65536).decode(errors="replace").splitlines()[-lines:]
        except OSError:
            return []

    def request_cancel(self) -> None:
        """Request cancellation by creating the marker file; a running worker stops after its current step."""
        self.cancel_file.touch()

    def cancel_requested(self) -> bool:
        """Return True while a cancellation request is pending."""
        return self.cancel_file.exists()

    def clear_cancel(self) -> None:
        """Remove a pending cancellation request."""
        self.cancel_file.unlink(missing_ok=True)

    def lock(self, wait: float = 2.0) -> locks.ProcessLock:
        """Return the worker's lock, a context manager that raises locks.Busy if another process holds it."""
        return locks.ProcessLock(self.path / LOCK, wait)

    def record(self, state: S) -> S:
        """Replace the stored state and return it; the caller must hold the lock."""
        atomic_files.replace_json(self.state_file, state.model_dump())
        return state

    @contextmanager
    def exclusive_start(self) -> Iterator[S | None]:
        """Hold the lock briefly so that only one of two concurrent callers starts the task; yields the current state.

        Raises:
            JobError: A worker is active or starting.
        """
        try:
            with self.lock(wait=0.5):
                state = self.state()
                if state is not None and state.is_starting():
                    raise JobError(f"{self.path.name} is already queued or starting")
                yield state
        except locks.Busy as busy:
            raise JobError(f"{self.path.name}: a process is running it; wait until it ends, or cancel it") from busy

    def queue(self, request: S) -> None:
        """Record the task as queued and clear earlier cancellation requests; the caller must hold the lock."""
        self.clear_cancel()
        self.record(request.queued_now())

    def start(self, arguments: Sequence[str], request: S) -> None:
        """Queue the task and start Python with `arguments` in the background; that process must call `execute`.

        Raises:
            JobError: A worker is active or starting.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with self.exclusive_start():
            self.queue(request)
        spawn_detached(arguments, self.path / LOG)

    def cancel(self) -> None:
        """Cancel the task: a running worker stops after its current step; without one, it is cancelled immediately."""
        if not self._unfinished():
            return
        self.request_cancel()
        try:
            with self.lock(wait=0.0):
                if state := self._unfinished():
                    self.record(state.replace(state="cancelled", message="cancelled"))
        except locks.Busy:
            # The kernel reports the holder of the lock; signal it only if it is also the worker named in the state. The
            # scheduler of a backend would take a signal to its process for a loss of the node.
            owner, state = locks.holder(self.path / LOCK), self.state()
            if owner and state and owner == state.pid and not state.backend:
                locks.terminate(owner, state.started)

    def _unfinished(self) -> S | None:
        state = self.state()
        return state if state is not None and state.state in BUSY else None

    def execute(self, job: Callable[[Progress[S]], S], request: S) -> S:
        """Run `job` in this process and record the state it returns.

        Args:
            job: Function that does the work. It receives a `Progress` and returns the final state.
            request: Initial state. If the task was queued a moment ago, its recorded time of queueing is kept.

        Returns:
            The recorded final state.

        Raises:
            KeyboardInterrupt: On cancellation, or on SIGTERM unless the caller installed its own handler.
            locks.Busy: Another process is working on the task.
            Exception: Any exception of `job`, after the failure was recorded.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with ExitStack() as after, self.lock(wait=0.5):
            before = self.state()
            if not (before and before.state in ("queued", "cancelled") and before.recently_queued()):
                self.clear_cancel()  # discard a cancellation request that is older than this execution
            asked = before if before and before.is_starting() else request.queued_now()
            progress = Progress(self, request.replace(queued=asked.queued, boot=asked.boot))
            in_main = threading.current_thread() is threading.main_thread()
            if in_main and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
                after.callback(signal.signal, signal.SIGTERM, signal.SIG_DFL)
                signal.signal(signal.SIGTERM, progress.on_signal)
            try:
                progress.report("starting")
                return self.record(job(progress))
            except KeyboardInterrupt:
                self.record(progress.state.replace(state="cancelled", message="cancelled"))
                self.clear_cancel()
                raise
            except Exception as error:
                self.record(progress.state.replace(state="failed", message=str(error)))
                raise


class Progress(Generic[S]):
    """Reporter of a running task's state, written a few times per second; raises KeyboardInterrupt on cancellation."""

    def __init__(self, task: Task[S], request: S) -> None:
        self._task, self._last_write = task, 0.0
        self._interrupted = False
        self._samples: deque[tuple[float, float]] = deque()
        pid = os.getpid()
        self.state = request.replace(state="running", pid=pid, started=locks.start_time(pid))

    def report(self, message: str, done: float = 0, total: float | None = None, **more: Any) -> None:
        """Report the current activity and how much of it is done.

        Args:
            message: The activity. The text before a colon names the stage; a new stage is written immediately.
            done: Amount done, in the units of `total`.
            total: Total amount, if known.
            more: Other fields of the state; if given, the state is written immediately.

        Raises:
            KeyboardInterrupt: Cancellation was requested.
        """
        now = time.monotonic()
        at_once = message.partition(":")[0] != self.state.message.partition(":")[0] or more
        if at_once:
            self._samples.clear()
        self._samples.append((now, done))
        while self._samples[0][0] < now - RATE_WINDOW and len(self._samples) > 2:
            self._samples.popleft()
        then, before = self._samples[0]
        rate = (done - before) / (now - then) if now > then else 0.0
        self.state = self.state.replace(message=message, done=done, total=total, rate=rate, **more)
        if at_once or now - self._last_write >= REPORT_INTERVAL:
            self._last_write = now
            if self._task.cancel_requested():
                self._interrupted = True
                raise KeyboardInterrupt
            self._task.record(self.state)

    def on_signal(self, *_: object) -> None:
        """Raise KeyboardInterrupt for the first signal only.

        `cancel` uses both a file and a signal, and the second of them must not interrupt the cleanup.
        """
        if not self._interrupted:
            self._interrupted = True
            raise KeyboardInterrupt

    def finished(self, message: str, **more: Any) -> S:
        """Return the final state, "done" with `message`; `more` overrides fields."""
        return self.state.replace(**{"state": "done", "message": message, **more})
