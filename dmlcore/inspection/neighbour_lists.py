"""Neighbour lists, AP@R and positives of some or all samples, computed in bounded memory.

An exact search of all n samples compares n² pairs. If these exceed MOST_PAIRS, only SAMPLE queries, drawn with a fixed
seed, are searched exactly to estimate the scores, and other queries are searched when they are displayed. On request, a
background job searches all queries, exactly or with an approximate index (`dmlcore.inspection.whole_search`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import numpy as np

from dmlcore.inspection.positives import Positives, positives
from dmlcore.metrics.mapped import nearest_others
from dmlcore.typing import Array, Bools, Floats, Ints, Singles

MOST_NEIGHBOURS = 24
MOST_PAIRS = 2**35  # largest number of pairs that an exact search compares: all pairs of 185,000 samples
SAMPLE = 1000  # number of queries
ENTRIES = 2**21  # largest number of list entries in memory at a time

# (rows, k) -> distances and row indices of the k nearest other samples
Search = Callable[[Ints, int], tuple[Floats, Ints]]


def too_many(is_gallery: Bools) -> bool:
    """Return True if searching all queries would compare more than MOST_PAIRS pairs."""
    return len(is_gallery) * (int(is_gallery.sum()) or len(is_gallery)) > MOST_PAIRS


def draw_queries(is_gallery: Bools, seed: int = 0) -> Ints:
    """Draw up to SAMPLE queries uniformly without replacement; return their rows (m,), ascending."""
    queries = np.flatnonzero(~is_gallery)
    return np.sort(np.random.default_rng(seed).choice(queries, min(SAMPLE, len(queries)), replace=False))


def exact_search(embeddings: Singles, is_gallery: Bools) -> Search:
    """Return a function that searches the nearest neighbours exactly, block by block."""
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

    For AP@R, each query is searched to a depth of at least R, the number of other searched samples of its class.

    Args:
        embeddings: Array (n, D), may be memory-mapped.
        labels: Integers (n,).
        is_gallery: Boolean mask (n,) of the rows to search; if none is set, all rows are searched.
        rows: Rows (m,) to find neighbours of.
        search: Function that finds the nearest other samples of given rows, see `Search`.
        deep: If True, also determine the ranks of positives beyond the end of the lists (see `positives`); `search`
            must then be exact.
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
    order = np.lexsort((rows, codes[rows], -depth))  # rows with the longest lists first, then grouped by class
    start = 0
    while start < len(order):
        some = order[start : start + max(1, ENTRIES // int(depth[order[start]]))]
        start += len(some)
        reach, near = search(rows[some], int(depth[some].max()))
        neighbours[some], distances[some] = near[:, :k], reach[:, :k]
        precision[some] = average_precision(labels[near] == labels[rows[some], None], matches[some])
        own = positives(embeddings, labels, is_gallery, near, rows[some], deep=deep)
        if not deep:  # cap the ranks at depth + 1, because longer lists depend on the other queries of the block
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
    """Return AP@R (m,) of queries, where R is the number of matches of each query; NaN where R = 0.

    Args:
        relevant: Boolean mask (m, k) with k >= R, True where a neighbour has the class of the query; nearest first.
        matches: Number (m,) of matches R of each query.
    """
    precision = np.full(len(matches), np.nan)
    scored = matches > 0
    place = np.arange(1, relevant.shape[1] + 1)
    counted = relevant[scored] & (place <= matches[scored, None])
    precision[scored] = (counted * np.cumsum(counted, axis=1) / place).sum(axis=1) / matches[scored]
    return precision
