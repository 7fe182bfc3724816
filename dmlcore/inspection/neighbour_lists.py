"""Neighbours of some samples among all: lists, AP@R, nearest and farthest of the own class, in bounded memory.

An exact search of all by all compares n² pairs. Where these are more than MOST_PAIRS nobody waits for it unasked:
SAMPLE queries, drawn by a seed, are each searched exactly among all, and give the scores; others are searched when they
are shown. All of them are a job, exact or by an index (`dmlcore.inspection.whole_search`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import numpy as np

from dmlcore.inspection.positives import Positives, positives
from dmlcore.metrics.mapped import nearest_others
from dmlcore.typing import Array, Bools, Floats, Ints, Singles

MOST_NEIGHBOURS = 24
MOST_PAIRS = 2**35  # all by all of 185,000 samples
SAMPLE = 1000  # queries
ENTRIES = 2**21  # of lists that are held at once

Search = Callable[[Ints, int], tuple[Floats, Ints]]  # (rows, k) -> distances and rows of the nearest others


def too_many(is_gallery: Bools) -> bool:
    """Whether all queries by all that is searched are more pairs than are compared unasked."""
    return len(is_gallery) * (int(is_gallery.sum()) or len(is_gallery)) > MOST_PAIRS


def drawn(is_gallery: Bools, seed: int = 0) -> Ints:
    """SAMPLE queries (m,), ascending, each as likely as any other."""
    queries = np.flatnonzero(~is_gallery)
    return np.sort(np.random.default_rng(seed).choice(queries, min(SAMPLE, len(queries)), replace=False))


def exact(embeddings: Singles, is_gallery: Bools) -> Search:
    """The exact search, part by part."""
    pool = np.flatnonzero(is_gallery) if is_gallery.any() else None
    return lambda rows, k: nearest_others(embeddings, rows, k, pool)


def ask(
    embeddings: Singles,
    labels: Ints,
    is_gallery: Bools,
    rows: Ints,
    search: Search,
    *,
    deep: bool = True,
    tell: Callable[[int], object] = lambda done: None,
) -> dict[str, Array]:
    """What is kept of each of these rows (m,): neighbours and distances (m, k), average_precision and `Positives` (m,).

    embeddings (n, D), may be memory-mapped; labels (n,); is_gallery (n,): what is searched, everything if nothing is
    marked. A list is searched as deep as the class of its query is large, for AP@R. deep: as in `positives`, which the
    search then must be exact for. tell: how many rows are done.
    """
    searched = is_gallery if is_gallery.any() else np.ones(len(labels), bool)
    available = int(searched.sum()) - 1
    k = min(MOST_NEIGHBOURS, available)
    values, codes = np.unique(labels, return_inverse=True)
    matches = np.bincount(codes[searched], minlength=len(values))[codes[rows]] - searched[rows]
    matches[is_gallery[rows]] = 0  # they are no queries
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
        if not deep:  # a list is as deep as its own class is large, whichever it was searched with
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
    """AP@R (m,) of queries with R matches (m,) from which of their nearest (m, k >= R) are right; NaN for R = 0."""
    precision = np.full(len(matches), np.nan)
    scored = matches > 0
    place = np.arange(1, relevant.shape[1] + 1)
    counted = relevant[scored] & (place <= matches[scored, None])
    precision[scored] = (counted * np.cumsum(counted, axis=1) / place).sum(axis=1) / matches[scored]
    return precision
