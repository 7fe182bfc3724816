"""Exact nearest neighbours of a few points among millions in a memory-mapped file, without copies or preparation.

Results are those of `nearest_neighbours`: sorted by (d, row), with d in float64. faiss lists more candidates than
needed in each part of the points in float32, and these are ranked by d. A point that a part did not list cannot belong
to the result if the last listed point of that part is farther than the k-th of all by more than the float32 error
(`error_bound`). Otherwise, which needs many points at nearly equal distance, the query is compared with all points by
d.
"""

from __future__ import annotations

import faiss
import numpy as np
import torch

from dmlcore.metrics.nearest_neighbours import SPARE, direct_distances, error_bound, split_rows, tuned_faiss
from dmlcore.typing import Floats, Ints, Reals, Singles

PART = 2**17  # points that are searched at a time


def nearest_others(points: Reals, rows: Ints, k: int, pool: Ints | None = None) -> tuple[Floats, Ints]:
    """Return distances and rows (m, k) of the exact nearest other points of `rows` (m,); ties by row.

    Args:
        points: Shape (n, D).
        rows: Rows of the queries, shape (m,).
        k: Number of neighbours.
        pool: Rows that may be returned, ascending; all by default.

    Raises:
        ValueError: If the pool has fewer than k others.
    """
    count = len(points) if pool is None else len(pool)
    if not 1 <= k < count:
        raise ValueError(f"k must be in 1..{count - 1} (others that are searched), got {k}")
    queries = _single(points[rows])
    lengths = np.linalg.norm(queries.astype(np.float64), axis=1)
    distances, near = np.empty((len(rows), 0)), np.empty((len(rows), 0), np.int64)
    beyond = np.full(len(rows), np.inf)  # squared; every unlisted point is at least this far
    for start in range(0, count, PART):
        part = np.arange(start, min(start + PART, count)) if pool is None else pool[start : start + PART]
        gallery = _single(points[part[0] : part[-1] + 1] if pool is None else points[part])
        listed = min(k + 1 + SPARE, len(part))
        with tuned_faiss():
            squares, places = faiss.knn(queries, gallery, listed)
        if listed < len(part):
            longest = float(np.sqrt(np.einsum("nd,nd->n", gallery, gallery).max())) * (1 + 2.0**-10)
            last = squares[:, -1]
            beyond = np.minimum(beyond, last - error_bound(lengths, np.maximum(last, 0), longest, queries.shape[1]))
        members = part[np.maximum(places, 0)]
        d = distances_to(points, rows, members)
        d[(members == rows[:, None]) | (places < 0)] = np.inf
        distances, near = first(np.hstack([distances, d]), np.hstack([near, members]), k)
    for at in np.flatnonzero(~(beyond > distances[:, -1] ** 2)):
        every = np.arange(len(points)) if pool is None else pool
        every = every[every != rows[at]]
        d = np.concatenate(
            [distances_to(points, rows[[at]], part[None])[0] for part in split_rows(every, points.shape[1])]
        )
        distances[[at]], near[[at]] = first(d[None], every[None], k)
    return distances, near


def first(distances: Floats, rows: Ints, k: int) -> tuple[Floats, Ints]:
    """Return the first k entries of each row (m, l), sorted by (distance, row)."""
    order = np.lexsort((rows, distances), axis=1)[:, :k]
    return np.take_along_axis(distances, order, 1), np.take_along_axis(rows, order, 1)


def distances_to(points: Reals, rows: Ints, others: Ints) -> Floats:
    """Compute the exact distances (m, l) of each of the rows (m,) to its others (m, l)."""
    out = np.empty(others.shape)
    for part in split_rows(np.arange(len(rows)), others.shape[1] * points.shape[1]):
        queries, compared = (torch.from_numpy(points[which].astype(np.float64)) for which in (rows[part], others[part]))
        out[part] = direct_distances(queries[:, None], compared)[:, 0].numpy()
    return out


def _single(points: Reals) -> Singles:
    return np.ascontiguousarray(points, np.float32)
