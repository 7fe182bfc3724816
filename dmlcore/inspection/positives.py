"""Nearest and farthest positive of each query, and the rank of the nearest among all samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dmlcore.typing import Bools, Floats, Ints, Singles

BLOCK = 2**22  # largest number of squared distances in memory
TOGETHER = 2**10  # number of queries ranked together, against BLOCK / TOGETHER samples at a time
MIDDLE = 2**14  # largest number of embeddings averaged to estimate the mean
SAME = 1e-12  # relative tolerance within which squared distances are equal; the lower row then comes first


@dataclass(frozen=True, eq=False)
class Positives:
    """Nearest and farthest positive of each row among the searched samples.

    Rows whose class has no other searched sample hold -1 as row index, NaN as distance and 0 as rank.
    """

    nearest: Ints  # (n,) rows
    nearest_distance: Floats  # (n,)
    farthest: Ints  # (n,) rows
    farthest_distance: Floats  # (n,)
    rank: Ints  # (n,) rank of the nearest among all searched samples, from 1; R@K counts queries with rank <= K


def positives(
    embeddings: Singles,
    labels: Ints,
    is_gallery: Bools,
    neighbours: Ints,
    rows: Ints | None = None,
    *,
    deep: bool = True,
) -> Positives:
    """Find the nearest and the farthest positive of each row, and the rank of the nearest positive.

    Args:
        embeddings: Array (n, D), may be memory-mapped.
        labels: Integers (n,).
        is_gallery: Boolean mask (n,) of the rows to search; if none is set, all rows are searched.
        neighbours: Row indices (m, k) of the nearest searched samples, from an exact search; they make most of the
            counting unnecessary.
        rows: Row indices (m,) of the queries, ascending; by default all rows.
        deep: If True, the rank of a positive that is not in `neighbours` is found by counting over all searched
            samples. If False, such a rank is set to k + 1, meaning k + 1 or later.
    """
    asked = np.arange(len(labels)) if rows is None else rows
    points = _Points(embeddings)
    searched = np.flatnonzero(is_gallery) if is_gallery.any() else np.arange(len(labels))
    near, far = np.full((2, len(asked)), -1)
    for places, own in _classes(labels, searched, asked):
        positions, squares = points.of(own)
        for at in _parts(places, len(own)):
            part = asked[at]
            queries, lengths = points.of(part)
            distance = lengths[:, None] + squares - 2 * queries @ positions.T
            itself = part[:, None] == own
            alone = itself.all(axis=1)
            near[at] = np.where(alone, -1, own[np.where(itself, np.inf, distance).argmin(axis=1)])
            far[at] = np.where(alone, -1, own[np.where(itself, -np.inf, distance).argmax(axis=1)])
    right = labels[neighbours] == labels[asked, None]
    listed = right.any(axis=1)
    rank = np.where(listed, right.argmax(axis=1) + 1, 0)
    # the neighbour lists are exact with ties ordered by row, so the first positive in a list is the nearest
    near[listed] = neighbours[listed, rank[listed] - 1]
    missing = np.flatnonzero(~listed & (near >= 0))
    rank[missing] = _ranks(points, asked[missing], near[missing], searched) if deep else neighbours.shape[1] + 1
    return Positives(near, _distances(embeddings, asked, near), far, _distances(embeddings, asked, far), rank)


class _Points:
    """Embeddings centred on an approximate mean, converted to double precision block by block.

    Without centring, the expanded form of the squared distance loses digits far from the origin.
    """

    def __init__(self, embeddings: Singles) -> None:
        self.embeddings = embeddings
        self.middle = embeddings[:: -(-len(embeddings) // MIDDLE)].mean(axis=0, dtype=np.float64)

    def of(self, rows: Ints) -> tuple[Floats, Floats]:
        """Return the centred embeddings (m, D) of `rows` and their squared norms (m,)."""
        points = self.embeddings[rows].astype(np.float64)
        points -= self.middle
        return points, np.einsum("nd,nd->n", points, points)


def _classes(labels: Ints, searched: Ints, asked: Ints) -> list[tuple[Ints, Ints]]:
    """Return, per class with searched rows, the positions in `asked` and the searched rows of that class."""
    order = np.argsort(labels[searched], kind="stable")
    pool = searched[order]
    places = np.argsort(labels[asked], kind="stable")
    values, starts = np.unique(labels[asked[places]], return_index=True)
    low, high = (np.searchsorted(labels[pool], values, side=side) for side in ("left", "right"))
    groups = np.split(places, starts[1:])
    return [(group, pool[a:b]) for group, a, b in zip(groups, low, high, strict=True) if b > a]


def _ranks(points: _Points, rows: Ints, own: Ints, searched: Ints) -> Ints:
    """Return the rank (m,) of sample own[i] in the neighbour list of query rows[i]; ties are ordered by row."""
    ranks = np.ones(len(rows), np.int64)
    for start in range(0, len(rows), TOGETHER):
        some = slice(start, start + TOGETHER)
        query, wanted = rows[some], own[some]
        (queries, squares), (positions, norms) = points.of(query), points.of(wanted)
        # omits the squared norm of the query, which is common to all distances
        limit = norms - 2 * np.einsum("nd,nd->n", queries, positions)
        slack = SAME * (squares + norms)
        for part in _parts(searched, TOGETHER):
            others, lengths = points.of(part)
            distance = lengths - 2 * queries @ others.T
            distance[query[:, None] == part] = np.inf
            ranks[some] += (distance < (limit - slack)[:, None]).sum(axis=1)
            at, place = np.nonzero(abs(distance - limit[:, None]) <= slack[:, None])
            ranks[some] += np.bincount(at[part[place] < wanted[at]], minlength=len(query))
    return ranks


def _parts(rows: Ints, width: int) -> list[Ints]:
    step = max(1, BLOCK // max(1, width))
    return [rows[start : start + step] for start in range(0, len(rows), step)]


def _distances(embeddings: Singles, rows: Ints, other: Ints) -> Floats:
    """Return the distance (m,) from rows[i] to other[i]; NaN where other[i] is -1."""
    distances = np.full(len(other), np.nan)
    for part in _parts(np.flatnonzero(other >= 0), embeddings.shape[1]):
        gaps = embeddings[rows[part]].astype(np.float64) - embeddings[other[part]]
        distances[part] = np.linalg.norm(gaps, axis=1)
    return distances
