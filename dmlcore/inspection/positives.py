"""The samples of a query's own class: the nearest, the farthest, and how many others come before the nearest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dmlcore.typing import Bools, Floats, Ints, Singles

BLOCK = 2**22  # squared distances held at once
TOGETHER = 2**10  # queries that are ranked together, against BLOCK / TOGETHER samples at a time
MIDDLE = 2**14  # embeddings whose mean it is
SAME = 1e-12  # relative: squared distances this close to each other are equal, then the lower row comes first


@dataclass(frozen=True, eq=False)
class Positives:
    """Of each row, against the samples that are searched; -1, NaN and 0 where the class has no other sample there."""

    nearest: Ints  # (n,) rows
    nearest_distance: Floats  # (n,)
    farthest: Ints  # (n,) rows
    farthest_distance: Floats  # (n,)
    rank: Ints  # (n,) of the nearest among all that is searched, from 1: R@K counts the queries with rank <= K


def positives(
    embeddings: Singles,
    labels: Ints,
    is_gallery: Bools,
    neighbours: Ints,
    rows: Ints | None = None,
    *,
    deep: bool = True,
) -> Positives:
    """Nearest and farthest sample of its own class for every row, or for some `rows` (m,), ascending.

    embeddings (n, D), which may be memory-mapped; labels (n,); is_gallery (n,): what is searched, everything but the
    row itself if nothing is marked; neighbours (m, k): rows of the nearest searched samples, exact, which spare most of
    the counting. deep: count beyond these lists, which compares such a row with all that is searched; else its rank is
    k + 1, which means there or later.
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
    near[listed] = neighbours[listed, rank[listed] - 1]  # exact, and the same of two at the same distance
    missing = np.flatnonzero(~listed & (near >= 0))
    rank[missing] = _ranks(points, asked[missing], near[missing], searched) if deep else neighbours.shape[1] + 1
    return Positives(near, _distances(embeddings, asked, near), far, _distances(embeddings, asked, far), rank)


class _Points:
    """Embeddings about their middle (the mean of some of them) in double precision, part by part: the expanded form of
    the distance loses digits far from it."""

    def __init__(self, embeddings: Singles) -> None:
        self.embeddings = embeddings
        self.middle = embeddings[:: -(-len(embeddings) // MIDDLE)].mean(axis=0, dtype=np.float64)

    def of(self, rows: Ints) -> tuple[Floats, Floats]:
        """Points (m, D) and their squared lengths (m,)."""
        points = self.embeddings[rows].astype(np.float64)
        points -= self.middle
        return points, np.einsum("nd,nd->n", points, points)


def _classes(labels: Ints, searched: Ints, asked: Ints) -> list[tuple[Ints, Ints]]:
    """Places in `asked` of each class, and the rows of it that are searched, where there are any."""
    order = np.argsort(labels[searched], kind="stable")
    pool = searched[order]
    places = np.argsort(labels[asked], kind="stable")
    values, starts = np.unique(labels[asked[places]], return_index=True)
    low, high = (np.searchsorted(labels[pool], values, side=side) for side in ("left", "right"))
    groups = np.split(places, starts[1:])
    return [(group, pool[a:b]) for group, a, b in zip(groups, low, high, strict=True) if b > a]


def _ranks(points: _Points, rows: Ints, own: Ints, searched: Ints) -> Ints:
    """Rank (m,) of sample own[i] among the searched ones seen from rows[i], ties by row."""
    ranks = np.ones(len(rows), np.int64)
    for start in range(0, len(rows), TOGETHER):
        some = slice(start, start + TOGETHER)
        query, wanted = rows[some], own[some]
        (queries, squares), (positions, norms) = points.of(query), points.of(wanted)
        limit = norms - 2 * np.einsum("nd,nd->n", queries, positions)  # less the square of the query, common to all
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
    """Distance (m,) of each of these rows to the row other[i], NaN where that is -1."""
    distances = np.full(len(other), np.nan)
    for part in _parts(np.flatnonzero(other >= 0), embeddings.shape[1]):
        gaps = embeddings[rows[part]].astype(np.float64) - embeddings[other[part]]
        distances[part] = np.linalg.norm(gaps, axis=1)
    return distances
