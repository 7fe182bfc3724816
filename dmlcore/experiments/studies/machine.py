"""Machine on which runs were trained, as recorded in results files."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path

from dmlcore.storage.runs import Run


def describe_machine(runs: Sequence[Run]) -> dict[str, str]:
    """Return the torch version and the machine of trained runs, as fields of a results file."""
    from dmlcore.storage import checkpoint  # imports torch

    last = next((run for run in reversed(runs) if run.state().state == "done"), None)
    saved = checkpoint.load(last.path) if last else None
    return {
        "torch": str(saved.facts["torch"]) if saved else "",
        "machine": f"{_processor()}, {last.state().device if last else ''}",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()
