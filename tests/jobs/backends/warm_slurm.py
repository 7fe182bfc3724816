"""Jobs of submitit's local executor as forks of tests/warm.py: the controlling process of a job and its tasks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from submitit.local import local

from tests import warm

FORKS = SimpleNamespace(**vars(subprocess))
CONTROL = f"from {__name__} import control; control()"


def popen(command: Sequence[str], **more: Any) -> warm.ForkedProcess:
    """Replace subprocess.Popen for the controlling process of a job and for `python -u -m`, one of its tasks."""
    python, *words = [word for word in command if word != "-u"]
    if words[:2] == ["-m", "submitit.local._local"]:
        words[:2] = ["-c", CONTROL]
    return warm.popen([python, *words], **more)


FORKS.Popen = popen


def control() -> None:
    """Execute `python -m submitit.local._local FOLDER`."""
    local.subprocess = FORKS  # type: ignore[attr-defined]
    local.Controller(Path(sys.argv[1])).run()


def use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Activate the replacement for the rest of this test."""
    monkeypatch.setattr(local, "subprocess", FORKS)
