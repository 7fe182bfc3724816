"""Selections of samples, shared by maps, galleries and tables; small files in the run directory, named by digest."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from dmlcore.storage import atomic_files
from dmlcore.storage.runs import Run
from dmlcore.typing import Ints

MOST_KEPT = 64  # number of newest selections kept per run
_NAME = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, eq=False)
class Selection:
    """Selected samples of a data set.

    Args:
        id: Digest of the content, 16 hexadecimal digits.
        indices: Sample indices (n,) in the data set, ascending.
        origin: Description of how the samples were selected.
    """

    id: str
    indices: Ints
    origin: str


def save(run: Run, indices: ArrayLike, origin: str) -> Selection:
    """Store a selection of samples; equal selections have equal ids.

    Only the newest MOST_KEPT selections of a run are kept.

    Args:
        run: Run that the selection belongs to.
        indices: Sample indices in the data set, in any order.
        origin: One short line of plain text, for example "lasso on the map".

    Raises:
        ValueError: There are no indices, or some are negative or not integers.
    """
    chosen = np.unique(np.asarray(indices))
    if chosen.dtype.kind not in "iu" or not len(chosen) or chosen[0] < 0:
        raise ValueError(
            f"indices must be one or more integers, at least 0, got {chosen.dtype} of length {len(chosen)}"
        )
    text = json.dumps({"origin": origin, "indices": chosen.tolist()})
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    folder = _folder(run)
    folder.mkdir(exist_ok=True)
    atomic_files.replace(folder / f"{name}.json", lambda file: file.write(text.encode()))
    for old in atomic_files.newest_first(folder.glob("[0-9a-f]*.json"))[MOST_KEPT:]:
        old.unlink(missing_ok=True)
    return Selection(name, chosen.astype(np.int64), origin)


def load(run: Run, name: str) -> Selection | None:
    """Return the selection with id `name`; None if it was deleted, is damaged, or the id is malformed."""
    if not _NAME.fullmatch(name):
        return None
    try:
        kept = atomic_files.read_json(_folder(run) / f"{name}.json")
        indices = np.unique(np.asarray(kept["indices"], np.int64))
        if indices.ndim != 1 or not len(indices) or indices[0] < 0:
            return None
        return Selection(name, indices, str(kept["origin"])[:1000])
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None


def newest(run: Run) -> Selection | None:
    """Return the selection that was saved last; None if the run has none."""
    by_age = atomic_files.newest_first(_folder(run).glob("[0-9a-f]*.json"))
    selections = (load(run, path.stem) for path in by_age)
    return next((selection for selection in selections if selection is not None), None)


def _folder(run: Run) -> Path:
    return run.path / "selections"
