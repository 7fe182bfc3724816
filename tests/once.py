"""What many tests read and none changes: made by the first that asks for it, for all processes of the suite."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """The folder of this name, filled by `make`; to be copied by whoever changes something."""
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent  # that of the whole run
    folder, part = base / name, base / f"{name}.part"
    with open(base / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            shutil.rmtree(part, ignore_errors=True)  # of a process that failed
            part.mkdir()
            make(part)
            part.rename(folder)
    return folder
