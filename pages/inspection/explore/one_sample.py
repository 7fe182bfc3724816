"""Neighbours and ranks of one sample for the Explore page, now and at the kept checkpoints."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dmlcore.data import Dataset
from dmlcore.inspection import metadata, neighbours, snapshots
from dmlcore.inspection.sample_history import SampleHistory, sample_history
from dmlcore.storage.runs import Run
from pages.shared.server import wire
from pages.shared.widgets.test_neighbours import learned


def near(source: Path, row: int) -> dict[str, Any]:
    """Return the neighbours, AP@R and first correct rank of the sample in row `row` of an embeddings file.

    Raises Unreadable.
    """
    known = learned(source)
    known.search_rows([row])
    nearest = zip(known.neighbours[row].tolist(), known.right[row].tolist(), known.distances[row].tolist(), strict=True)
    return {
        "neighbours": [{"row": other, "right": right, "distance": distance} for other, right, distance in nearest],
        "precision": wire.number(float(known.average_precision[row])),
        "rank": int(known.positives.rank[row]),
        "forces": bool(known.positives.nearest[row] >= 0 and not known.is_gallery[row]),
    }


def described(data: Dataset | None, index: int) -> dict[str, Any]:
    """Return the "id" of a sample ("" if it has none) and its "metadata", a list of names and values."""
    return {"id": metadata.id_of(data, index), "metadata": metadata.describe(data, index)}


def history(run: Run, index: int) -> dict[str, Any]:
    """Return the nearest neighbour and first correct rank of a sample at each embedded checkpoint, as "moments".

    "kept" is the number of all kept checkpoints. Raises Unreadable, FileNotFoundError.
    """
    kept = snapshots.snapshots(run)
    embedded = tuple((each.step, each.embeddings) for each in kept if each.embeddings)
    known = _history(embedded, tuple(path.stat().st_mtime_ns for _, path in embedded))
    moments = []
    if known is not None:
        for at in np.flatnonzero(known.indices == index):
            moments = [
                {
                    "step": int(step),
                    "nearest": int(known.nearest[k, at]),
                    "right": bool(known.right[k, at]),
                    "rank": int(known.rank[k, at]),
                    "distance": float(known.distance[k, at]),
                }
                for k, step in enumerate(known.steps)
            ]
    return {"moments": moments, "kept": len(kept)}


@lru_cache(maxsize=2)
def _history(embedded: tuple[tuple[int, Path], ...], changed: tuple[int, ...]) -> SampleHistory | None:
    """Read the history of a sample at the embedded checkpoints; `changed` (modification times) is part of the cache
    key.
    """
    return sample_history((step, neighbours.read(path)) for step, path in embedded)
