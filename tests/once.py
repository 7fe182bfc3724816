"""Read-only test data that is created once for all processes of the suite, by the first process that needs it."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return the folder `name`, filled by `make` on the first call. Tests that modify it work on a copy."""
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent  # base folder shared by all workers
    folder, part = base / name, base / f"{name}.part"
    with open(base / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            shutil.rmtree(part, ignore_errors=True)  # left by a process that failed
            part.mkdir()
            make(part)
            part.rename(folder)
    return folder
