"""Starting and joining the processes of a run on this machine, with error messages that say why one of them failed.

The processes find each other through a temporary directory, so no port is needed and no process is reachable from other
machines.
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

FOLDER = "DML_PROCESSES"  # environment variable with the path of the temporary directory that the processes share
POLL_INTERVAL = 0.05  # seconds between two checks of processes or files
GRACE = 10.0  # seconds after which processes that have not ended are killed
REMEDY = "The last checkpoint is valid; resume the run from it, with any number of processes"
LOOPBACK = "lo"


class Companions:
    """Processes of a run that rank 0 has started: all ranks except 0."""

    def __init__(self, folder: Path, processes: Mapping[int, subprocess.Popen[bytes]]) -> None:
        self._folder, self._processes = folder, processes

    def failure(self, wait: float = 2.0) -> str:
        """Return a message about the first process found to have failed, or "" if none fails within `wait` seconds."""
        until = time.monotonic() + wait
        while True:
            for rank, process in self._processes.items():
                if process.poll():
                    how = f"was terminated by signal {-process.returncode}" if process.returncode < 0 else "failed"
                    words = self._folder / f"ended-{rank}"
                    reason = words.read_text() if words.exists() else ""
                    return f"process {rank + 1} of {len(self._processes) + 1} {how}" + (f": {reason}" if reason else "")
            if time.monotonic() > until:
                return ""
            time.sleep(POLL_INTERVAL)

    def raise_if_failed(self) -> None:
        """Raise ProcessError if one of the other processes has failed."""
        if reason := self.failure(wait=0):
            raise ProcessError(reason)

    def shut_down(self) -> None:
        """Wait for all processes to end; kill those that are still running after GRACE seconds."""
        until = time.monotonic() + GRACE
        for process in self._processes.values():
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def start_companions(arguments: Sequence[str], count: int) -> Iterator[None]:
    """Start `count - 1` more Python processes with these arguments, and act as rank 0 within this context.

    Each of these processes has to enter `take_part`. Raises ProcessError with the reason if one of them fails.
    """
    with tempfile.TemporaryDirectory(prefix="dml-") as name:
        folder = Path(name)
        own = _environment(folder, 0, count)
        os.environ.update(own)
        started = Companions(folder, {rank: _start(arguments, folder, rank, count) for rank in range(1, count)})
        try:
            join_local(started)
            yield
        except Exception as error:
            reason = started.failure() if _may_be_lost(error) else ""
            if not reason:
                raise
            raise ProcessError(f"{reason}. {REMEDY}") from error
        finally:
            group.leave()
            started.shut_down()
            for key in own:
                os.environ.pop(key, None)


@contextmanager
def take_part(
    join: Callable[[], object] | None = None, leave_word: Callable[[str], object] | None = None
) -> Iterator[None]:
    """Within this context, act as one of the processes started by `start_companions`, torchrun or a cluster.

    Args:
        join: Function that joins the group; default: `join_local`.
        leave_word: Function that stores the message of an error in this process. It is called before this process
            leaves the group, so that the message is there when the other processes fail.

    Raises:
        ProcessError: Another process has ended.
    """
    starter = os.getppid()
    try:
        (join or join_local)()
        yield
    except Exception as error:
        if not _may_be_lost(error):
            (leave_word or _report_failure)(str(error))
            raise
        raise ProcessError(f"another process of the run has stopped. {REMEDY}") from error
    finally:
        group.leave()
        # If the parent process was killed, it cannot remove the shared directory, so remove it here.
        if os.getppid() != starter and FOLDER in os.environ:
            shutil.rmtree(os.environ[FOLDER], ignore_errors=True)


def join_local(others: Companions | None = None) -> None:
    """Join the process group described by the environment variables of `start_companions` or torchrun.

    Args:
        others: On rank 0, the processes that it started.

    Raises:
        ProcessError: Another process, or the one that started this process, ended before all have joined.
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
            others.raise_if_failed()
        elif os.getppid() != starter or not folder.exists():
            raise ProcessError("the first process has stopped")
        time.sleep(POLL_INTERVAL)
    group.join(f"file://{folder / 'store'}")


def _may_be_lost(error: Exception) -> bool:
    """Return True if the error may mean that another process is unreachable.

    In this case, gloo and NCCL raise RuntimeError itself instead of a subclass.
    """
    import torch.distributed as dist

    return type(error) is RuntimeError or isinstance(error, (ProcessError, dist.DistError))


def _report_failure(reason: str) -> None:
    """Write the reason of this process's failure to a file for rank 0; do nothing under torchrun, which prints it."""
    if name := os.environ.get(FOLDER):
        path = Path(name) / f"ended-{group.rank()}"
        if path.parent.exists():
            path.write_text(reason)


def _start(arguments: Sequence[str], folder: Path, rank: int, count: int) -> subprocess.Popen[bytes]:
    environment = os.environ | _environment(folder, rank, count)
    return subprocess.Popen([sys.executable, *arguments], env=environment, stdin=subprocess.DEVNULL)


def _environment(folder: Path, rank: int, count: int) -> dict[str, str]:
    """Return the variables that torchrun would set for this rank, and FOLDER with the path of the shared directory."""
    numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count}
    return {FOLDER: str(folder)} | {key: str(value) for key, value in numbers.items()}
