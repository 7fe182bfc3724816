"""Answers about one failure of a run, kept as JSON files in a folder of its run, the newest of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from dmlcore.storage import atomic_files
from dmlcore.storage.runs import Run

MOST_KEPT = 64  # newest answers of a folder

# Why neither a step nor a gradient can be asked for where neighbours take part in embeddings.
READ_TOGETHER = (
    "Each embedding of this run was read with its neighbours, so no step and no influence is of single samples alone; "
    "ask a run without neighbours."
)


def path_of(run: Run, folder: str, query: int, right: int, wrong: int) -> Path | None:
    """Where the answer on a triplet of the newest evaluation is kept; None before an evaluation."""
    source = run.embeddings()
    if source is None:
        return None
    name = hashlib.sha256(f"{source.stem} {query} {right} {wrong}".encode()).hexdigest()[:16]
    return run.path / folder / f"{name}.json"


def read(path: Path | None, keys: Collection[str]) -> dict[str, Any] | None:
    """What was kept, with these keys at least; None where there is nothing or nothing whole."""
    try:
        content = atomic_files.read_json(path) if path else None
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) and set(keys) <= content.keys() else None


def keep(path: Path, answer: dict[str, Any]) -> None:
    """Write an answer, and remove those beyond the newest."""
    path.parent.mkdir(exist_ok=True)
    atomic_files.replace(path, lambda file: file.write(json.dumps(answer, allow_nan=False).encode()))
    by_age = sorted(path.parent.glob("[0-9a-f]*.json"), key=lambda each: each.stat().st_mtime_ns, reverse=True)
    for old in by_age[MOST_KEPT:]:
        old.unlink(missing_ok=True)
