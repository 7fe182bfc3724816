"""Processes that tests start and wait for."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from dmlcore.storage.home import HOME

CARD = Path("/dev/nvidiactl")
multiprocessing.set_forkserver_preload(["tests.preload"])


def run_python(*arguments: str, cwd: Path = HOME, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments and return its output and exit status."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False)


class ForkedTask(ForkServerProcess):
    """Background task in a fork of a process that has trained once (tests/preload.py): saves 3 s of CPU time.

    It replaces the process that `dmlcore.storage.task.spawn_detached` starts. `arguments` are -m, a module and its
    arguments.
    """

    def __init__(self, arguments: Sequence[str], log: Path | None) -> None:
        super().__init__()
        self.arguments, self.log, self.environment = [*arguments], log or os.devnull, dict(os.environ)

    def run(self) -> None:
        """Run the module with the environment of the test as a leader of its own session; output goes to the log."""
        os.setsid()
        os.chdir(HOME)
        os.environ.clear()
        os.environ.update(self.environment)
        tempfile.tempdir = None
        with open(self.log, "ab") as output:
            for descriptor in (1, 2):
                os.dup2(output.fileno(), descriptor)
        _, module, *rest = self.arguments
        sys.argv = [module, *rest]
        runpy.run_module(module, run_name="__main__", alter_sys=True)

    def poll(self) -> int | None:
        """Return the exit status, or None while the process is running."""
        return self.exitcode


def until(condition: Callable[[], object], why: Callable[[], object] = str, seconds: float = 180.0) -> None:
    """Wait until a condition holds; after `seconds`, fail with the value of `why`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"timed out {why()}"
        time.sleep(0.005)
