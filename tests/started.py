"""Processes that tests start and wait for."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from dmlcore.storage.home import HOME


def run_python(*arguments: str, cwd: Path = HOME, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments and return its output and exit status."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False)


def until(condition: Callable[[], object], why: Callable[[], object] = str, seconds: float = 180.0) -> None:
    """Wait until a condition holds; after `seconds`, fail with the value of `why`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"timed out {why()}"
        time.sleep(0.005)
