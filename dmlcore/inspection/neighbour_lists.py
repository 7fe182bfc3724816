"""Neighbour lists, AP@R and positives of some or all samples, computed in bounded memory.

An exact search of all by all compares n² pairs. Above MOST_PAIRS it is not run without a request: SAMPLE queries, drawn
with a fixed seed, are searched exactly and give the scores; other queries are searched when they are shown. A
background job searches all queries, exactly or with an index (`dmlcore.inspection.whole_search`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import numpy as np

from dmlcore.inspection.positives import Positives, positives
from dmlcore.metrics.mapped import nearest_others
from dmlcore.typing import Array, Bools, Floats, Ints, Singles

MOST_NEIGHBOURS = 24
MOST_PAIRS = 2**35  # all pairs of 185,000 samples
SAMPLE = 1000  # number of queries
ENTRIES = 2**21  # largest number of list entries in memory

Search = Callable[[Ints, int], tuple[Floats, Ints]]  # (rows, k) -> distances and rows of the nearest others


def too_many(is_gallery: Bools) -> bool:
    """Return True if searching all queries would compare more than MOST_PAIRS pairs."""
    return len(is_gallery) * (int(is_gallery.sum()) or len(is_gallery)) > MOST_PAIRS


def draw_queries(is_gallery: Bools, seed: int = 0) -> Ints:
    """Draw SAMPLE queries uniformly; return their rows (m,), ascending."""
    queries = np.flatnonzero(~is_gallery)
    return np.sort(np.random.default_rng(seed).choice(queries, min(SAMPLE, len(queries)), replace=False))


def exact_search(embeddings: Singles, is_gallery: Bools) -> Search:
    """Return a function that searches exactly, block by block."""
    pool = np.flatnonzero(is_gallery) if is_gallery.any() else None
    return lambda rows, k: nearest_others(embeddings, rows, k, pool)


def search_rows(
    embeddings: Singles,
    labels: Ints,
    is_gallery: Bools,
    rows: Ints,
    search: Search,
    *,
    deep: bool = True,
    tell: Callable[[int], object] = lambda done: None,
) -> dict[str, Array]:
    """Search the neighbours of some rows and compute the values that are stored for them.

    Lists are searched as deep as the class of the query is large, for AP@R.

    Args:
        embeddings: Array (n, D), may be memory-mapped.
        labels: Integers (n,).
        is_gallery: Flags (n,) of the rows to search; if none is set, all rows are searched.
        rows: Rows (m,) to find neighbours of.
        search: Function that finds the nearest others of given rows.
        deep: Determine ranks beyond the lists, see `positives`; `search` must then be exact.
        tell: Called with the number of finished rows.

    Returns:
        Arrays neighbours and distances (m, k), average_precision (m,) and the fields of `Positives` (m,).
    """
    searched = is_gallery if is_gallery.any() else np.ones(len(labels), bool)
    available = int(searched.sum()) - 1
    k = min(MOST_NEIGHBOURS, available)
    values, codes = np.unique(labels, return_inverse=True)
    matches = np.bincount(codes[searched], minlength=len(values))[codes[rows]] - searched[rows]
    matches[is_gallery[rows]] = 0  # gallery rows are not queries
    depth = np.minimum(np.maximum(matches, k), available)
    neighbours, distances = np.empty((len(rows), k), np.int64), np.empty((len(rows), k))
    precision, ranked = np.full(len(rows), np.nan), list[tuple[Ints, Positives]]()
    order = np.lexsort((rows, codes[rows], -depth))  # long lists first, then class by class
    start = 0
    while start < len(order):
        some = order[start : start + max(1, ENTRIES // int(depth[order[start]]))]
        start += len(some)
        reach, near = search(rows[some], int(depth[some].max()))
        neighbours[some], distances[some] = near[:, :k], reach[:, :k]
        precision[some] = average_precision(labels[near] == labels[rows[some], None], matches[some])
        own = positives(embeddings, labels, is_gallery, near, rows[some], deep=deep)
        if not deep:  # makes ranks independent of the other queries of the block
            np.minimum(own.rank, depth[some] + 1, out=own.rank)
        ranked.append((some, own))
        tell(start)
    lists = {"neighbours": neighbours, "distances": distances, "average_precision": precision}
    back = np.argsort(order)
    return lists | {
        field.name: np.concatenate([getattr(part, field.name) for _, part in ranked])[back]
        for field in fields(Positives)
    }


def average_precision(relevant: Bools, matches: Ints) -> Floats:
    """Return AP@R (m,) of queries with R matches each, NaN where R = 0.

    Args:
        relevant: Flags (m, k), k >= R: True where a neighbour, nearest first, has the class of the query.
        matches: R of each query (m,).
    """
    precision = np.full(len(matches), np.nan)
    scored = matches > 0
    place = np.arange(1, relevant.shape[1] + 1)
    counted = relevant[scored] & (place <= matches[scored, None])
    precision[scored] = (counted * np.cumsum(counted, axis=1) / place).sum(axis=1) / matches[scored]
    return precision
