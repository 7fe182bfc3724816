"""Analysis results for single retrieval failures of a run, stored as JSON files in its run directory."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dmlcore.storage import atomic_files
from dmlcore.storage.runs import Run

Hyper = Mapping[str, float | str | None]
MOST_KEPT = 64  # number of newest results kept per folder

# error message for runs with embeddings that are conditioned on neighbours
READ_TOGETHER = (
    "The embeddings of this run depend on neighbours, so steps and influences of single samples are undefined. Choose "
    "a run without conditioning."
)


@dataclass(frozen=True)
class Question:
    """Request for the analysis of one failure: one optimiser step per loss, or the influence of the training samples.

    Args:
        query: Sample index of the query.
        right: Sample index of a neighbour of the query's class.
        wrong: Sample index of a neighbour of another class.
        losses: Hyper-parameters of each loss to take a step with, by name; None stands for infinity, which means no
            clamp.
    """

    query: int
    right: int
    wrong: int
    losses: Mapping[str, Hyper] = field(default_factory=dict)

    @property
    def triplet(self) -> tuple[int, int, int]:
        """Sample indices of the query and of its two neighbours."""
        return self.query, self.right, self.wrong

    def to_json(self) -> str:
        """Return the JSON text that `from_json` reads."""
        losses = {name: plain(hyper) for name, hyper in self.losses.items()}
        return json.dumps(asdict(self) | {"losses": losses}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Question:
        """Create a Question from the JSON text that `to_json` returns.

        Raises:
            ValueError: The text is not JSON, or an index is not an integer.
            KeyError: A field is missing.
        """
        data = json.loads(text)
        query, right, wrong = (int(data[name]) for name in ("query", "right", "wrong"))
        return cls(query, right, wrong, dict(data.get("losses", {})))


def plain(hyper: Hyper) -> dict[str, float | str | None]:
    """Return the hyper-parameters with +infinity, which JSON lacks, replaced with None."""
    return {name: None if value == math.inf else value for name, value in hyper.items()}


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
    for old in atomic_files.newest_first(path.parent.glob("[0-9a-f]*.json"))[MOST_KEPT:]:
        old.unlink(missing_ok=True)
