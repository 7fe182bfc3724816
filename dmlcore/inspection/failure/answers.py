"""Analysis results for single retrieval failures of a run, stored as JSON files in its run directory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from dmlcore.storage import atomic_files
from dmlcore.storage.runs import Run

MOST_KEPT = 64  # number of newest results kept per folder

# error message for runs with embeddings that are conditioned on neighbours
READ_TOGETHER = (
    "The embeddings of this run depend on neighbours, so steps and influences of single samples are undefined. Choose "
    "a run without conditioning."
)


def path_of(run: Run, folder: str, query: int, right: int, wrong: int) -> Path | None:
    """Return the path of the stored result for a triplet of the newest evaluation.

    Args:
        run: Evaluated run.
        folder: Name of the folder in the run directory that holds the results.
        query: Sample index of the query.
        right: Sample index of a neighbour of the query's class.
        wrong: Sample index of a neighbour of another class.

    Returns:
        The path, or None if the run has not been evaluated.
    """
    source = run.embeddings()
    if source is None:
        return None
    name = hashlib.sha256(f"{source.stem} {query} {right} {wrong}".encode()).hexdigest()[:16]
    return run.path / folder / f"{name}.json"


def read(path: Path | None, keys: Collection[str]) -> dict[str, Any] | None:
    """Return a stored result; None if it is missing, damaged or lacks one of `keys`."""
    try:
        content = atomic_files.read_json(path) if path else None
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) and set(keys) <= content.keys() else None


def keep(path: Path, answer: dict[str, Any]) -> None:
    """Write a result, and delete all but the newest MOST_KEPT results in the same folder."""
    path.parent.mkdir(exist_ok=True)
    atomic_files.replace(path, lambda file: file.write(json.dumps(answer, allow_nan=False).encode()))
    by_age = sorted(path.parent.glob("[0-9a-f]*.json"), key=lambda each: each.stat().st_mtime_ns, reverse=True)
    for old in by_age[MOST_KEPT:]:
        old.unlink(missing_ok=True)
