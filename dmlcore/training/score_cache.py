"""Cache of baseline scores on disk: equal inputs give equal scores, so they are computed once for all runs."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable
from typing import Any, cast

import numpy as np

from dmlcore.data.files.locate import cache_folder
from dmlcore.metrics.scores import SCORES
from dmlcore.storage import atomic_files, metrics_rows
from dmlcore.storage.metrics_rows import Row
from dmlcore.typing import Array

MAX_ROWS = 8  # largest number of rows in one file
log = logging.getLogger(__name__)


def cached(key: object, arrays: Iterable[Array], compute: Callable[[], list[Row]]) -> list[Row]:
    """Return the metrics rows that `compute` returns, from the cache if they were computed before.

    A cache that cannot be read or written is ignored.

    Args:
        key: Settings that determine the scores, with a stable repr. It includes a version that increases if the
            computation changes.
        arrays: Arrays that determine the scores, such as embeddings and labels.
        compute: Function that computes the rows.
    """
    digest = hashlib.sha256(repr((key, *SCORES)).encode())  # plug-ins may add scores
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    path = cache_folder() / "scores" / f"{digest.hexdigest()}.json"
    try:
        saved: Any = atomic_files.read_json(path, MAX_ROWS * metrics_rows.MAX_LINE_BYTES)
        checked = [metrics_rows.validate_row(row) for row in saved] if isinstance(saved, list) else [None]
        if None not in checked:
            return cast(list[Row], checked)
    except (OSError, ValueError):
        pass
    rows = compute()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_files.replace_json(path, rows)
    except OSError as error:
        log.warning("baseline scores could not be saved: %s", error)
    return rows
