"""The samples of a query's own class: the nearest, the farthest, and how many others come before the nearest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dmlcore.typing import Bools, Floats, Ints, Singles

BLOCK = 2**22  # squared distances held at once
SAME = 1e-12  # relative: squared distances this close to each other are equal, then the lower row comes first


@dataclass(frozen=True, eq=False)
class Positives:
    """Of each row, against the samples that are searched; -1, NaN and 0 where the class has no other sample there."""

    nearest: Ints  # (n,) rows
    nearest_distance: Floats  # (n,)
    farthest: Ints  # (n,) rows
    farthest_distance: Floats  # (n,)
    rank: Ints  # (n,) of the nearest among all that is searched, from 1: R@K counts the queries with rank <= K


def positives(embeddings: Singles, labels: Ints, is_gallery: Bools, neighbours: Ints) -> Positives:
    """Nearest and farthest sample of its own class for every row.

    embeddings (n, D), labels (n,); is_gallery (n,): what is searched, everything but the row itself if nothing is
    marked; neighbours (n, k): rows of the nearest searched samples, exact, which spare most of the counting.
    """
    points = embeddings.astype(np.float64)
    points -= points.mean(axis=0)  # the expanded form of the distance loses digits far from the origin
    squares = np.einsum("nd,nd->n", points, points)
    searched = np.flatnonzero(is_gallery) if is_gallery.any() else np.arange(len(labels))
    near, far = np.full((2, len(labels)), -1)
    for queries, own in _classes(labels, searched):
        for part in _parts(queries, len(own)):
            distance = squares[part, None] + squares[own] - 2 * points[part] @ points[own].T
            itself = part[:, None] == own
            alone = itself.all(axis=1)
            near[part] = np.where(alone, -1, own[np.where(itself, np.inf, distance).argmin(axis=1)])
            far[part] = np.where(alone, -1, own[np.where(itself, -np.inf, distance).argmax(axis=1)])
    right = labels[neighbours] == labels[:, None]
    listed = right.any(axis=1)
    rank = np.where(listed, right.argmax(axis=1) + 1, 0)
    near[listed] = neighbours[listed, rank[listed] - 1]  # exact, and the same of two at the same distance
    missing = np.flatnonzero(~listed & (near >= 0))
    rank[missing] = _ranks(points, squares, missing, near[missing], searched)
    return Positives(near, _distances(embeddings, near), far, _distances(embeddings, far), rank)


def _classes(labels: Ints, searched: Ints) -> list[tuple[Ints, Ints]]:
    """Rows of each class, and those of them that are searched, where there are any."""
    order = np.argsort(labels, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    is_searched = np.zeros(len(labels), bool)
    is_searched[searched] = True
    return [(group, own) for group in groups if len(own := group[is_searched[group]])]


def _ranks(points: Floats, squares: Floats, rows: Ints, own: Ints, searched: Ints) -> Ints:
    """Rank (m,) of sample own[i] among the searched ones seen from rows[i], ties by row."""
    ranks = np.empty(len(rows), np.int64)
    gallery, norms = points[searched], squares[searched]
    is_searched = np.isin(rows, searched)
    for part in _parts(np.arange(len(rows)), len(searched)):
        query, wanted = rows[part], own[part]
        distance = norms - 2 * points[query] @ gallery.T  # less the square of the query, which is common to all
        itself = np.flatnonzero(is_searched[part])
        distance[itself, np.searchsorted(searched, query[itself])] = np.inf
        limit = squares[wanted] - 2 * np.einsum("nd,nd->n", points[query], points[wanted])
        slack = SAME * (squares[query] + squares[wanted])
        before = (distance < (limit - slack)[:, None]).sum(axis=1)
        at, place = np.nonzero(abs(distance - limit[:, None]) <= slack[:, None])
        ranks[part] = before + np.bincount(at[searched[place] < wanted[at]], minlength=len(part)) + 1
    return ranks


def _parts(rows: Ints, width: int) -> list[Ints]:
    step = max(1, BLOCK // max(1, width))
    return [rows[start : start + step] for start in range(0, len(rows), step)]


def _distances(embeddings: Singles, other: Ints) -> Floats:
    """Distance (n,) of each row to the row other[i], NaN where that is -1."""
    distances = np.full(len(other), np.nan)
    rows = np.flatnonzero(other >= 0)
    for part in _parts(rows, embeddings.shape[1]):
        distances[part] = np.linalg.norm(embeddings[part].astype(np.float64) - embeddings[other[part]], axis=1)
    return distances
