"""Process locks that the kernel releases when their process dies, and signals that reach only the intended process."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import math
import os
import signal
import struct
import threading
import time
from functools import cache
from pathlib import Path

REMOTE = -1  # holder of a lock that a process on another machine holds, of a file on a network file system
_FLOCK = struct.Struct("hhqqi")  # struct flock of 64-bit Linux: type, whence, start, length, process ID

# POSIX locks belong to a process: a second thread could acquire the same lock again, and closing any descriptor of its
# file would release it. Therefore this table lists the locks that the process holds, and no function of this module
# opens the file of a listed lock.
_held: set[str] = set()
_held_guard = threading.Lock()
os.register_at_fork(after_in_child=_held.clear)


class Busy(RuntimeError):
    """Error for a lock that is held by another process, or by another thread of this one."""


class ProcessLock:
    """Exclusive lock on the file `path`, released by the kernel when its process dies; a context manager.

    Entering raises Busy if the lock is not acquired within `wait` seconds.
    """

    def __init__(self, path: Path, wait: float = 2.0) -> None:
        self.path, self.wait = path, wait
        self._key = os.path.realpath(path)
        self._descriptor = -1

    def __enter__(self) -> ProcessLock:
        deadline = time.monotonic() + self.wait
        while not self._try():
            if time.monotonic() >= deadline:
                owner = holder(self.path)
                who = "another machine" if owner == REMOTE else f"process {owner or 'unknown'}"
                raise Busy(f"{self.path.parent.name} is in use by {who}")
            time.sleep(0.05)
        return self

    def __exit__(self, *_: object) -> None:
        with _held_guard:
            os.close(self._descriptor)
            _held.discard(self._key)

    def _try(self) -> bool:
        with _held_guard:
            if self._key in _held:
                return False
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(descriptor)
                if error.errno not in (errno.EACCES, errno.EAGAIN):
                    raise
                return False
            self._descriptor = descriptor
            _held.add(self._key)
            return True


def is_held_here(path: Path) -> bool:
    """Return True if this process holds the lock at `path`."""
    return os.path.realpath(path) in _held


def holder(path: Path) -> int:
    """Return the process ID of the holder of the lock at `path`, REMOTE for another machine, or 0 if the lock is free.

    The kernel is queried (F_GETLK) without taking the lock, so watching a task cannot make its worker fail.
    """
    with _held_guard:
        if is_held_here(path):
            return os.getpid()
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return 0
        try:
            question = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, question))
        finally:
            os.close(descriptor)
    # NFS reports process ID 0 or a negative one for a lock of another machine
    return 0 if kind == fcntl.F_UNLCK else pid if pid > 0 else REMOTE


@cache
def current_boot() -> str:
    """Return the ID of the current boot of this machine, or "" if the kernel does not provide one."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def elapsed(since: float, boot_id: str) -> float:
    """Return the seconds since `since`, a value of time.monotonic() measured in boot `boot_id`.

    Returns inf if the machine was rebooted since then. An empty `boot_id` means the current boot.
    """
    passed = time.monotonic() - since
    return passed if passed >= 0 and boot_id in ("", current_boot()) else math.inf


def start_time(pid: int) -> int | None:
    """Return the start time of process `pid` in clock ticks since boot, or None if there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # field 22 of the line; the command name may contain spaces and ")", so split after the last ")"
    return int(text.rpartition(")")[2].split()[19])


def terminate(pid: int, started: int | None) -> bool:
    """Send SIGTERM to process `pid` if its start time is `started`; return True if the signal was sent.

    The signal is sent through a pidfd, so it cannot hit a later process with the same ID.
    """
    if pid <= 0 or started is None:
        return False
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if start_time(pid) != started:
            return False
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, signal.SIGTERM)
            return True
        return False
    finally:
        os.close(descriptor)
