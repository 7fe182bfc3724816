"""What the inputs themselves score: the same for every run on the same data, so it is computed once and kept."""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path

import numpy as np

from dmlcore import durable, evaluation, rows
from dmlcore.data import Dataset
from dmlcore.data.folders import cache_folder
from dmlcore.rows import Row

VERSION = 1  # of what a row of scores holds
log = logging.getLogger(__name__)


def inputs_row(data: Dataset, part: str, ks: tuple[int, ...]) -> Row:
    """The scores row "inputs" of a part, from the cache where the very same inputs were scored before.

    Thousands of dimensions make this search the slowest of a short run. A cache that cannot be read or written is
    done without.
    """
    raw = evaluation.raw_inputs(data, part)
    indices, searched = evaluation.rows_of(data, part)
    digest = hashlib.sha256(repr((VERSION, raw.shape, tuple(ks))).encode())
    for array in (raw, data.labels[indices], searched):
        digest.update(np.ascontiguousarray(array).tobytes())
    path = cache_folder() / "scores" / f"{digest.hexdigest()}.json"
    if (kept := _read(path)) is not None:
        return kept
    row = evaluation.row("inputs", 0, evaluation.score(raw, data, part, ks))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        durable.replace_json(path, row)
    except OSError as error:
        log.warning("scores of the inputs are not kept: %s", error)
    return row


def _read(path: Path) -> Row | None:
    try:
        row = rows.checked(json.loads(durable.contents(path, rows.LONGEST_LINE)))
    except (OSError, ValueError, RecursionError):
        return None
    return row if row and row.get("of") == "inputs" else None
