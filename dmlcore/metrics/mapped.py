"""Exact nearest neighbours of a few points among millions in a memory-mapped file, without copying the file.

Results equal those of `nearest_neighbours`: sorted by (d, row index), with the distance d computed in float64. The
points are read in chunks. In each chunk, faiss lists slightly more than k candidates in float32, which are then ranked
by d. An unlisted point cannot be among the k nearest if the last candidate of its chunk is farther than the k-th
nearest overall by more than the float32 error (`error_bound`). If that cannot be shown, because many points are at
nearly equal distance, the query is compared with all points by d.
"""

from __future__ import annotations

import faiss
import numpy as np
import torch

from dmlcore.metrics.nearest_neighbours import SPARE, as_single, direct_distances, error_bound, split_rows, tuned_faiss
from dmlcore.typing import Floats, Ints, Reals

PART = 2**17  # number of points that are read and searched at a time


def nearest_others(points: Reals, rows: Ints, k: int, pool: Ints | None = None) -> tuple[Floats, Ints]:
    """Return distances and row indices, both (m, k), of the k other points nearest to the points at `rows` (m,).

    Results are exact; ties go to the lower row index.

    Args:
        points: Shape (n, D).
        rows: Row indices of the query points, shape (m,).
        k: Number of neighbours.
        pool: Row indices that may be returned, ascending; all by default.

    Raises:
        ValueError: If k is less than 1, or not less than the number of points that are searched.
    """
    count = len(points) if pool is None else len(pool)
    if not 1 <= k < count:
        raise ValueError(f"k must be in 1..{count - 1} (others that are searched), got {k}")
    queries = as_single(points[rows])
    lengths = np.linalg.norm(queries.astype(np.float64), axis=1)
    distances, near = np.empty((len(rows), 0)), np.empty((len(rows), 0), np.int64)
    # lower bound on the squared distance of all points that no chunk listed as candidates
    beyond = np.full(len(rows), np.inf)
    for start in range(0, count, PART):
        part = np.arange(start, min(start + PART, count)) if pool is None else pool[start : start + PART]
        gallery = as_single(points[part[0] : part[-1] + 1] if pool is None else points[part])
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
    """Sort the candidates of each query, (m, l), by (distance, row index) and return the first k of each."""
    order = np.lexsort((rows, distances), axis=1)[:, :k]
    return np.take_along_axis(distances, order, 1), np.take_along_axis(rows, order, 1)


def distances_to(points: Reals, rows: Ints, others: Ints) -> Floats:
    """Compute the exact distances (m, l) from the points at `rows` (m,) to the points at `others` (m, l)."""
    out = np.empty(others.shape)
    for part in split_rows(np.arange(len(rows)), others.shape[1] * points.shape[1]):
        queries, compared = (torch.from_numpy(points[which].astype(np.float64)) for which in (rows[part], others[part]))
        out[part] = direct_distances(queries[:, None], compared)[:, 0].numpy()
    return out
