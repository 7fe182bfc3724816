"""Processes that tests start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from dmlcore.storage.home import HOME


def run_python(*arguments: str, cwd: Path = HOME, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments and return its output and exit status."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False)
