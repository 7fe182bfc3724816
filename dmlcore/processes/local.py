"""The other processes of a run on this machine: started, found, waited for, and asked why they ended.

They meet in a folder of their own, so no port is chosen and nothing listens to other machines.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from dmlcore.processes import group
from dmlcore.processes.group import ProcessError

FOLDER = "DML_PROCESSES"  # the environment variable that names the folder where they meet
LOOK = 0.05  # seconds between two looks
GRACE = 10.0  # seconds that the others have to end by themselves
REMEDY = "The last checkpoint is good: resume goes on from there, with any number of processes"
LOOPBACK = "lo"


class Companions:
    """The processes beside the first one, by rank."""

    def __init__(self, folder: Path, processes: Mapping[int, subprocess.Popen[bytes]]) -> None:
        self._folder, self._processes = folder, processes

    def why(self, wait: float = 2.0) -> str:
        """Which of them has ended otherwise than it should, and how; "" if none does within `wait` seconds."""
        until = time.monotonic() + wait
        while True:
            for rank, process in self._processes.items():
                if process.poll():
                    how = f"was ended by signal {-process.returncode}" if process.returncode < 0 else "ended"
                    words = self._folder / f"ended-{rank}"
                    reason = words.read_text() if words.exists() else ""
                    return f"process {rank + 1} of {len(self._processes) + 1} {how}" + (f": {reason}" if reason else "")
            if time.monotonic() > until:
                return ""
            time.sleep(LOOK)

    def require(self) -> None:
        """Raise ProcessError if one has ended."""
        if reason := self.why(wait=0):
            raise ProcessError(reason)

    def end(self) -> None:
        """Wait for their end, and bring it about where it does not come."""
        until = time.monotonic() + GRACE
        for process in self._processes.values():
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def companions(arguments: Sequence[str], count: int) -> Iterator[None]:
    """Start `count - 1` more processes of Python with these arguments, and be the first of them all in here.

    Each calls `member`. Raises ProcessError where one of them ends before the others, with its reason.
    """
    with tempfile.TemporaryDirectory(prefix="dml-") as name:
        folder = Path(name)
        own = _environment(folder, 0, count)
        os.environ.update(own)
        started = Companions(folder, {rank: _start(arguments, folder, rank, count) for rank in range(1, count)})
        try:
            meet(started)
            yield
        except Exception as error:
            reason = started.why() if _is_lost(error) else ""
            if not reason:
                raise
            raise ProcessError(f"{reason}. {REMEDY}") from error
        finally:
            group.leave()
            started.end()
            for key in own:
                os.environ.pop(key, None)


@contextmanager
def member(
    join: Callable[[], object] | None = None, leave_word: Callable[[str], object] | None = None
) -> Iterator[None]:
    """Be one of the processes that `companions`, torchrun or a cluster has started.

    join: how they meet, else `meet`. leave_word: told why this one ends, before the others notice. Raises ProcessError
    if another one ends.
    """
    starter = os.getppid()
    try:
        (join or meet)()
        yield
    except Exception as error:
        if not _is_lost(error):
            (leave_word or _leave_word)(str(error))
            raise
        raise ProcessError(f"another process of the run has ended. {REMEDY}") from error
    finally:
        group.leave()
        if os.getppid() != starter and FOLDER in os.environ:  # it was killed, and clears nothing away
            shutil.rmtree(os.environ[FOLDER], ignore_errors=True)


def meet(others: Companions | None = None) -> None:
    """Join the group that the environment tells of: of `others`, or of torchrun.

    Raises ProcessError where one of the others, or the one that started this one, is gone before all are there.
    """
    if not (name := os.environ.get(FOLDER)):
        group.join()
        return
    if os.path.exists(f"/sys/class/net/{LOOPBACK}"):
        os.environ.setdefault("GLOO_SOCKET_IFNAME", LOOPBACK)
    folder, rank = Path(name), group.rank()
    (folder / f"here-{rank}").touch()
    starter = os.getppid()
    expected = [folder / f"here-{each}" for each in range(int(os.environ["WORLD_SIZE"]))]
    while not all(path.exists() for path in expected):
        if others is not None:
            others.require()
        elif os.getppid() != starter or not folder.exists():
            raise ProcessError("the first process is gone")
        time.sleep(LOOK)
    group.join(f"file://{folder / 'store'}")


def _is_lost(error: Exception) -> bool:
    """Whether it may say that another process cannot be reached: what gloo and NCCL raise has no type of its own."""
    import torch.distributed as dist

    return type(error) is RuntimeError or isinstance(error, (ProcessError, dist.DistError))


def _leave_word(reason: str) -> None:
    """Say why this process ends to the first one; nothing under torchrun, which shows it."""
    if name := os.environ.get(FOLDER):
        path = Path(name) / f"ended-{group.rank()}"
        if path.parent.exists():
            path.write_text(reason)


def _start(arguments: Sequence[str], folder: Path, rank: int, count: int) -> subprocess.Popen[bytes]:
    environment = os.environ | _environment(folder, rank, count)
    return subprocess.Popen([sys.executable, *arguments], env=environment, stdin=subprocess.DEVNULL)


def _environment(folder: Path, rank: int, count: int) -> dict[str, str]:
    """What torchrun would set, and the folder."""
    numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count}
    return {FOLDER: str(folder)} | {key: str(value) for key, value in numbers.items()}
