"""What a run has learned, ready to look at: neighbours and scores of its test embeddings."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dmlcore.metrics import RetrievalScores, nearest, retrieval

MOST_NEIGHBOURS = 24
Order = Literal["worst first", "best first", "by index"]


class Unreadable(RuntimeError):
    """A file of embeddings or points that is damaged; the message says which and what to do."""


@dataclass(frozen=True, eq=False)
class Learned:
    """Row i is sample `indices[i]` of the data set, of class `labels[i]`; neighbours are rows too, nearest first.

    Where the data set has a gallery of its own, neighbours are rows of it, and its rows are no queries.
    """

    embeddings: NDArray[np.float32]  # (n, D)
    indices: NDArray[np.int64]  # (n,)
    labels: NDArray[np.int64]  # (n,)
    neighbours: NDArray[np.int64]  # (n, k)
    distances: NDArray[np.float64]  # (n, k)
    right: NDArray[np.bool_]  # (n, k): of the query's class
    average_precision: NDArray[np.float64]  # (n,), NaN where the class has no other sample
    recall_at_1: float | None
    map_at_r: float | None
    is_gallery: NDArray[np.bool_]  # (n,)

    @property
    def failures(self) -> NDArray[np.bool_]:
        """(n,): the nearest neighbour is of another class although there is one of the same."""
        return ~self.right[:, 0] & ~np.isnan(self.average_precision)

    def queries(self, label: int | None, order: Order, failures: bool) -> NDArray[np.int64]:
        """Rows that pass the filters, in order; those of a class without a second sample come last."""
        rows = np.arange(len(self.labels))
        if order != "by index":
            quality = self.average_precision if order == "worst first" else -self.average_precision
            rows = np.argsort(quality, kind="stable")  # NaN sorts last
        keep = self.failures[rows] if failures else ~self.is_gallery[rows]
        if label is not None:
            keep &= self.labels[rows] == label
        return rows[keep]

    def row(self, index: str) -> int | None:
        """The row of a sample named in a link, or None."""
        if not (index.isascii() and index.isdigit() and len(index) < 10):
            return None
        rows = np.flatnonzero(self.indices == int(index))
        return int(rows[0]) if len(rows) else None


def read(path: Path) -> Learned:
    """Neighbours and scores of an embeddings file; raises Unreadable."""
    again = "Evaluate the run again"
    embeddings, labels, indices, *more = arrays(
        path, "embeddings", "labels", "indices", remedy=again, optional=("is_gallery",)
    )
    is_gallery = more[0] if more else np.zeros(len(labels), bool)
    try:
        distances, neighbours = _neighbours(embeddings, is_gallery)
        found = _scored(embeddings, labels, is_gallery)
    except (ValueError, TypeError) as error:
        raise Unreadable(f"{path.name} cannot be shown: {error}. Evaluate the run again.") from None
    average_precision = np.full(len(labels), np.nan)
    average_precision[~is_gallery] = found.per_query_average_precision
    return Learned(
        embeddings=embeddings,
        indices=indices,
        labels=labels,
        neighbours=neighbours,
        distances=distances,
        right=labels[neighbours] == labels[:, None],
        average_precision=average_precision,
        recall_at_1=found.recall_at[1],
        map_at_r=found.map_at_r,
        is_gallery=is_gallery,
    )


def _neighbours(
    embeddings: NDArray[np.float32], is_gallery: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Distances and rows (n, k) of the nearest others; in the gallery where there is one, for its own rows too."""
    if not is_gallery.any():
        return nearest(embeddings, k=min(MOST_NEIGHBOURS, len(embeddings) - 1))
    rows = np.flatnonzero(is_gallery)
    gallery, k = embeddings[rows], min(MOST_NEIGHBOURS, len(rows) - 1)
    distances, neighbours = np.empty((len(embeddings), k)), np.empty((len(embeddings), k), np.int64)
    for of, found in ((~is_gallery, nearest(embeddings[~is_gallery], gallery, k)), (is_gallery, nearest(gallery, k=k))):
        distances[of], neighbours[of] = found[0], rows[found[1]]
    return distances, neighbours


def _scored(
    embeddings: NDArray[np.float32], labels: NDArray[np.int64], is_gallery: NDArray[np.bool_]
) -> RetrievalScores:
    if not is_gallery.any():
        return retrieval(embeddings, labels, ks=(1,))
    queries = embeddings[~is_gallery], labels[~is_gallery]
    return retrieval(*queries, gallery=embeddings[is_gallery], gallery_labels=labels[is_gallery], ks=(1,))


def arrays(path: Path, *names: str, remedy: str, optional: tuple[str, ...] = ()) -> list[NDArray[Any]]:
    """The arrays of these names, then those of the optional ones that are there; raises Unreadable."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return [file[name] for name in (*names, *(name for name in optional if name in file))]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise Unreadable(f"{path.name} cannot be read ({error}). {remedy}.") from None
