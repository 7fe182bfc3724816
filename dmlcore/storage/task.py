"""Work that outlives whoever asks for it: training runs, jobs on runs, studies, protocols, downloads, checks are tasks.

A task is a folder that anybody may read: `lock` is held by who works on it, the only sign of life that cannot be stale;
`state.json` is replaced whole; `cancel` is a request; `log.txt` is what its process says. Its process begins in
`detached`, the one place to replace where tasks shall begin in another way, for example on a cluster.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from dmlcore.storage import atomic_files, locks
from dmlcore.storage.home import HOME
from dmlcore.storage.run_directory import CANCEL, LOCK, LOG, STATE

START_GRACE = 20.0  # seconds until a process that was started must hold the lock
SAY_EVERY = 0.5  # seconds between two writings of the progress
WINDOW = 8.0  # seconds over which the rate is told
LONGEST = 2**20  # bytes of a state.json
BUSY: tuple[Literal["queued"], Literal["running"]] = ("queued", "running")
Tell = Callable[[str, float, float], object]  # what is being done, how much of it is, of how much: as `Progress.say`


class JobError(RuntimeError):
    """A task that cannot be started; the message says why and what to do."""


def _shortened(text: object) -> object:
    """A text as it may be shown; what a process says when it fails can be of any length."""
    return text if not isinstance(text, str) or len(text) <= 4000 else f"{text[:3999]}…"


Text = Annotated[str, BeforeValidator(_shortened)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class TaskState(BaseModel):
    """What state.json of every task holds; unknown keys of later releases are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    state: Literal["queued", "running", "done", "incomplete", "failed", "cancelled"] = "queued"
    message: Text = ""
    pid: Annotated[int, Field(ge=0, lt=2**31)] = 0  # last worker, and
    started: Annotated[int, Field(ge=0, lt=2**63)] | None = None  # when that process did (clock ticks since boot)
    queued: Annotated[float, Field(ge=-(2**33), le=2**33)] = 0.0  # time.monotonic(), which all share until a boot,
    boot: Text = ""  # and which boot that was
    backend: Text = ""  # where it is done, as `jobs.backends.choice` reads it; "": by processes of this machine

    def changed(self, **changes: Any) -> Self:
        """A copy with other values; raises ValidationError."""
        return type(self).model_validate(self.model_dump() | changes)

    def queued_now(self) -> Self:
        """The same as asked for at this moment, its process on its way."""
        return self.changed(state="queued", message="", queued=time.monotonic(), boot=locks.boot())

    def recent(self) -> bool:
        """Whether it was queued so lately that its process may not have come yet."""
        return self.queued > 0 and locks.elapsed(self.queued, self.boot) < START_GRACE

    def on_its_way(self) -> bool:
        """Whether its process may not hold the lock yet."""
        return self.state == "queued" and self.recent()


class ProgressState(TaskState):
    """Of a task that counts what it does; rate is per second."""

    done: Amount = 0.0
    total: Amount | None = None
    rate: Annotated[float, Field(allow_inf_nan=False)] = 0.0


S = TypeVar("S", bound=TaskState)


def detached(arguments: Sequence[str], log: Path | None = None) -> subprocess.Popen[bytes]:
    """Start Python with these arguments in a session of its own, which no end of ours ends; log takes its output."""
    with open(log or os.devnull, "ab") as output:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=HOME,
            env={"OMP_WAIT_POLICY": "PASSIVE", **os.environ},  # see dmlcore.cli.main
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    threading.Thread(target=process.wait, daemon=True).start()  # leave no zombie behind in a long-lived server
    return process


class Task(Generic[S]):
    """One task in its folder; readers never need whoever works on it alive."""

    def __init__(self, path: Path, kind: type[S]) -> None:
        self.path, self.kind = path, kind

    @property
    def state_file(self) -> Path:
        """Where its state is recorded."""
        return self.path / STATE

    @property
    def cancel_file(self) -> Path:
        """What is there while it is asked to end."""
        return self.path / CANCEL

    def state(self) -> S | None:
        """What was recorded last; None before anything was, or if it cannot be read."""
        try:
            return self.kind.model_validate_json(atomic_files.contents(self.state_file, LONGEST))
        except (OSError, ValidationError):
            return None

    def alive(self) -> bool:
        """Whether some process works on it now."""
        try:
            return locks.holder(self.path / LOCK) != 0
        except OSError:  # no file that anybody could hold
            return False

    def status(self) -> str:
        """The state as shown: "never" asked for, or "lost": it should be at work, and nobody holds the lock."""
        state = self.state()
        if state is not None and state.state not in BUSY:
            return state.state
        alive = self.alive()  # before the state: a worker records its end before it drops the lock
        state = self.state()
        if state is None:
            return "running" if alive else "never"
        if alive or state.state not in BUSY:
            return state.state
        return "queued" if state.on_its_way() else "lost"

    def busy(self) -> bool:
        """Whether somebody works on it, or is about to."""
        return self.status() in BUSY

    def log_tail(self, lines: int = 20) -> list[str]:
        """The last lines of its log."""
        try:
            with atomic_files.regular(self.path / LOG, 2**63) as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - 65536))
                return file.read(65536).decode(errors="replace").splitlines()[-lines:]
        except OSError:
            return []

    def request_cancel(self) -> None:
        """Ask whoever works on it to stop after the current step."""
        self.cancel_file.touch()

    def cancel_requested(self) -> bool:
        """Whether a cancel is waiting to be honoured."""
        return self.cancel_file.exists()

    def withdraw_cancel(self) -> None:
        """Forget a cancel."""
        self.cancel_file.unlink(missing_ok=True)

    def lock(self, wait: float = 2.0) -> locks.ProcessLock:
        """The lock of who works on it, as a context manager; raises locks.Busy if another process does."""
        return locks.ProcessLock(self.path / LOCK, wait)

    def record(self, state: S) -> S:
        """Replace the state; for the holder of the lock."""
        atomic_files.replace_json(self.state_file, state.model_dump())
        return state

    @contextmanager
    def idle(self) -> Iterator[S | None]:
        """Hold the lock for a moment, so that of two who start it at once one does; JobError unless nobody works."""
        try:
            with self.lock(wait=0.5):
                state = self.state()
                if state is not None and state.on_its_way():
                    raise JobError(f"{self.path.name} is waiting or about to start already")
                yield state
        except locks.Busy as busy:
            raise JobError(f"{self.path.name}: something is working on it already; wait for it, or cancel it") from busy

    def queue(self, request: S) -> None:
        """Record that it is asked for now, and forget what was asked of it before; for the holder of the lock."""
        self.withdraw_cancel()
        self.record(request.queued_now())

    def start(self, arguments: Sequence[str], request: S) -> None:
        """Start Python with these arguments, detached, whose `work` does it; raises JobError while somebody does."""
        self.path.mkdir(parents=True, exist_ok=True)
        with self.idle():
            self.queue(request)
        detached(arguments, self.path / LOG)

    def cancel(self) -> None:
        """End it after its current step, keeping everything; what nobody works on is cancelled here and now."""
        if not self._unfinished():
            return
        self.request_cancel()
        try:
            with self.lock(wait=0.0):
                if state := self._unfinished():
                    self.record(state.changed(state="cancelled", message="cancelled"))
        except locks.Busy:
            # The kernel names the holder of the lock; it is ours if it is also the process the state tells of.
            owner, state = locks.holder(self.path / LOCK), self.state()
            if owner and state and owner == state.pid:
                locks.terminate(owner, state.started)

    def _unfinished(self) -> S | None:
        state = self.state()
        return state if state is not None and state.state in BUSY else None

    def work(self, job: Callable[[Progress[S]], S], request: S) -> S:
        """Do it in this process, from `request` on; returns and records the state that `job` ends with.

        SIGTERM, unless whoever calls handles it, and a request to cancel end it by KeyboardInterrupt. Raises locks.Busy
        if another process is at it, and what the job raises.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with ExitStack() as after, self.lock(wait=0.5):
            before = self.state()
            if not (before and before.state in ("queued", "cancelled") and before.recent()):
                self.withdraw_cancel()  # a request that came before this was asked for is void
            asked = before if before and before.on_its_way() else request.queued_now()
            progress = Progress(self, request.changed(queued=asked.queued, boot=asked.boot))
            in_main = threading.current_thread() is threading.main_thread()
            if in_main and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
                after.callback(signal.signal, signal.SIGTERM, signal.SIG_DFL)
                signal.signal(signal.SIGTERM, progress.on_signal)
            try:
                progress.say("starting")
                return self.record(job(progress))
            except KeyboardInterrupt:
                self.record(progress.state.changed(state="cancelled", message="cancelled"))
                self.withdraw_cancel()
                raise
            except Exception as error:
                self.record(progress.state.changed(state="failed", message=str(error)))
                raise


class Progress(Generic[S]):
    """Tells the state of a task that is at work, a few times a second; KeyboardInterrupt once it is cancelled."""

    def __init__(self, task: Task[S], request: S) -> None:
        self._task, self._said = task, 0.0
        self._interrupted = False
        self._seen: deque[tuple[float, float]] = deque()
        pid = os.getpid()
        self.state = request.changed(state="running", pid=pid, started=locks.start_time(pid))

    def say(self, message: str, done: float = 0, total: float | None = None, **more: Any) -> None:
        """What is being done, and how much of it is; more: other values of the state.

        What stands before a colon in the message names the stage; a new stage is written at once.
        """
        now = time.monotonic()
        at_once = message.partition(":")[0] != self.state.message.partition(":")[0] or more
        if at_once:
            self._seen.clear()
        self._seen.append((now, done))
        while self._seen[0][0] < now - WINDOW and len(self._seen) > 2:
            self._seen.popleft()
        then, before = self._seen[0]
        rate = (done - before) / (now - then) if now > then else 0.0
        self.state = self.state.changed(message=message, done=done, total=total, rate=rate, **more)
        if at_once or now - self._said >= SAY_EVERY:
            self._said = now
            if self._task.cancel_requested():
                self._interrupted = True
                raise KeyboardInterrupt
            self._task.record(self.state)

    def on_signal(self, *_: object) -> None:
        """KeyboardInterrupt, once: `cancel` asks by file and by signal, and the later one must not cut off the end."""
        if not self._interrupted:
            self._interrupted = True
            raise KeyboardInterrupt

    def end(self, message: str, **more: Any) -> S:
        """The state of a task that is done; more: what is otherwise."""
        return self.state.changed(**{"state": "done", "message": message, **more})
