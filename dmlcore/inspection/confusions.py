"""Which classes a network confuses: of which class the nearest neighbours are, and an order that puts them together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from dmlcore.metrics import ClassScores
from dmlcore.metrics.mapped import nearest_others
from dmlcore.metrics.nearest_neighbours import CHUNK, SPARE, NeighbourSearch
from dmlcore.typing import Floats, Ints


@dataclass(frozen=True, eq=False)
class Confusions:
    """How often a neighbour of class j is found for a query of class i; classes by their place in `classes`.

    counts (C, C) sparse: row i the queries, column j what is found; queries (C,): how many were counted of each class.
    """

    classes: Ints  # (C,) labels, ascending
    counts: csr_array
    queries: Ints

    @cached_property
    def shares(self) -> csr_array:
        """(C, C) sparse: the share of the neighbours of class i that are of class j; a row adds up to 1, or 0 without
        queries."""
        total = np.maximum(self.counts.sum(axis=1), 1)
        shares = csr_array(self.counts, dtype=np.float64)
        shares.data /= np.repeat(total, np.diff(shares.indptr))
        return shares

    @property
    def wrong(self) -> float:
        """Share of all counted neighbours that are of another class than their query; NaN without any."""
        total = self.counts.sum()
        return float(1 - self.counts.diagonal().sum() / total) if total else float("nan")

    def matrix(self, places: ArrayLike | None = None) -> Floats:
        """Shares (c, c) between the classes at these places (c,), all by default, as a plain array."""
        shares = self.shares if places is None else self.shares[np.asarray(places)][:, np.asarray(places)]
        return np.asarray(shares.todense(), np.float64)

    def place(self, label: int) -> int | None:
        """Where a class stands, by its label; None for one that is not here."""
        at = int(np.searchsorted(self.classes, label))
        return at if at < len(self.classes) and self.classes[at] == label else None


@dataclass(frozen=True, eq=False)
class ClassPairs:
    """Pairs of classes (m,), most confused first: places `first` < `second`, and the shares both ways."""

    first: Ints
    second: Ints
    there: Floats  # of the neighbours of `first`, those of `second`
    back: Floats
    mutual: Floats  # mean of both; where one class has no queries, the share of the other


def of_neighbours(labels: ArrayLike, neighbours: ArrayLike, queries: ArrayLike, k: int) -> Confusions:
    """Count the classes of the k nearest neighbours of each query.

    labels (n,) integers, neighbours (n, m) rows nearest first, queries (n,) booleans, k in 1..m. Raises ValueError
    naming the argument.
    """
    labels, neighbours, queries = np.asarray(labels), np.asarray(neighbours), np.asarray(queries, bool)
    if neighbours.ndim != 2 or len(neighbours) != len(labels) or queries.shape != labels.shape:
        raise ValueError(
            f"labels {labels.shape}, neighbours {neighbours.shape} and queries {queries.shape} do not fit together"
        )
    if not 1 <= k <= neighbours.shape[1]:
        raise ValueError(f"k must be in 1..{neighbours.shape[1]} (neighbours that are kept), got {k}")
    classes, codes = np.unique(labels, return_inverse=True)
    counts = _table(len(classes))
    for rows in _parts(np.flatnonzero(queries), k):
        counts += _table(len(classes), np.repeat(codes[rows], k), codes[neighbours[rows, :k]].ravel())
    return Confusions(classes, counts, np.bincount(codes[queries], minlength=len(classes)))


def of_class_size(
    embeddings: NDArray[np.floating],
    labels: ArrayLike,
    is_gallery: ArrayLike | None = None,
    neighbours: Ints | None = None,
    queries: ArrayLike | None = None,
) -> Confusions:
    """Count the classes of the R nearest neighbours of each query, R being how many others of its class there are.

    The diagonal is then the R-precision of each class, weighted by R. Queries with R = 0 are left out. embeddings
    (n, D), labels (n,); is_gallery (n,): rows that are searched by the others, which then are the queries.
    neighbours (n, m), if known, spares the search where no R is beyond m. queries (n,): those that are counted, all by
    default; some of many are searched without a copy of the embeddings.
    """
    labels = np.asarray(labels)
    searched = np.zeros(len(labels), bool) if is_gallery is None else np.asarray(is_gallery, bool)
    classes, codes = np.unique(labels, return_inverse=True)
    alone = not searched.any()
    every = np.arange(len(labels)) if alone else np.flatnonzero(~searched)
    pool = every if alone else np.flatnonzero(searched)
    rows = every if queries is None else every[np.asarray(queries, bool)[every]]
    some = len(rows) < len(every)
    size = np.bincount(codes[pool], minlength=len(classes))[codes[rows]] - alone
    rows, asked, size = rows[size > 0], np.flatnonzero(size > 0), size[size > 0]
    counts = _table(len(classes))
    lists = neighbours if neighbours is not None and len(size) and int(size.max()) <= neighbours.shape[1] else None
    search = (
        None
        if lists is not None or some
        else NeighbourSearch(embeddings[~searched], None if alone else embeddings[searched], exclude_self=alone)
    )
    order = np.argsort(-size, kind="stable")
    start = 0
    while start < len(order):
        k = int(size[order[start]])
        part = np.sort(order[start : start + max(1, CHUNK // (k + SPARE))])
        start += len(part)
        if search is None:
            others = nearest_others(embeddings, rows[part], k, pool)[1] if lists is None else lists[rows[part], :k]
            nearest = codes[others]
        else:
            # Only classes are asked for, so neighbours of one class need not be told apart.
            nearest = codes[pool[search.ranked(asked[part], k, mark=lambda _, items: codes[pool[items]])]]
        counted = np.arange(k) < size[part, None]
        counts += _table(len(classes), np.repeat(codes[rows[part]], size[part]), nearest[counted])
    return Confusions(classes, counts, np.bincount(codes[rows], minlength=len(classes)))


def pairs(confusions: Confusions, most: int = 100) -> ClassPairs:
    """The pairs of different classes that share most neighbours, at most so many, ties by class."""
    shares = confusions.shares
    asked = (confusions.queries > 0).astype(np.float64)
    symmetric = (shares + shares.T).tocoo()
    above = symmetric.row < symmetric.col
    first, second = symmetric.row[above].astype(np.int64), symmetric.col[above].astype(np.int64)
    mutual = symmetric.data[above] / np.maximum(asked[first] + asked[second], 1)
    best = np.lexsort((second, first, -mutual))[:most]
    first, second, mutual = first[best], second[best], mutual[best]
    return ClassPairs(first, second, _entries(shares, first, second), _entries(shares, second, first), mutual)


def prominent(confusions: Confusions, most: int) -> Ints:
    """Places of the classes worth showing, ascending: all, or those of the most confused pairs, at most so many."""
    if len(confusions.classes) <= most:
        return np.arange(len(confusions.classes))
    best = pairs(confusions, most * most)
    _, when = np.unique(np.column_stack([best.first, best.second]).ravel(), return_index=True)
    sequence = np.column_stack([best.first, best.second]).ravel()[np.sort(when)]
    return np.sort(sequence[:most])


def around(confusions: Confusions, place: int, most: int) -> Ints:
    """Places of a class and of those that are most confused with it, either way, at most so many, ascending."""
    mutual = np.asarray(
        (confusions.shares[[place]] + confusions.shares.T.tocsr()[[place]]).todense(), np.float64
    ).ravel()
    mutual[place] = np.inf
    order = np.argsort(-mutual, kind="stable")[:most]
    return np.sort(order[mutual[order] > 0])


def ordered(shares: Floats) -> Ints:
    """A permutation of the classes of shares (c, c) that puts confused ones beside each other.

    Leaves of average linkage over 1 - sqrt(s / max s), s the mean of both ways, with the sum of the distances of
    neighbouring leaves as small as the tree allows (Bar-Joseph, Gifford & Jaakkola 2001). The root lets small
    confusions matter too.
    """
    from scipy.cluster.hierarchy import leaves_list, linkage  # slow to import
    from scipy.spatial.distance import squareform

    mutual = (shares + shares.T) / 2
    np.fill_diagonal(mutual, 0.0)
    top = float(mutual.max(initial=0.0))
    if len(shares) < 3 or top <= 0:
        return np.arange(len(shares))
    distances = 1 - np.sqrt(mutual / top)
    np.fill_diagonal(distances, 0.0)
    tree = linkage(squareform(distances, checks=False), "average", optimal_ordering=True)
    return np.asarray(leaves_list(tree), np.int64)


def by_class(labels: ArrayLike, average_precision: ArrayLike, first_right: ArrayLike) -> ClassScores:
    """MAP@R and R@1 of each class from the scores of its queries, (n,) each; NaN of average_precision: not scored."""
    labels, average_precision = np.asarray(labels), np.asarray(average_precision, np.float64)
    scored = ~np.isnan(average_precision)
    classes, place, queries = np.unique(labels[scored], return_inverse=True, return_counts=True)
    means = (
        np.bincount(place, np.asarray(per_query)[scored], minlength=len(classes)) / queries
        for per_query in (average_precision, first_right)
    )
    return ClassScores(classes, queries, *means)


def _table(classes: int, i: NDArray[np.integer] | None = None, j: NDArray[np.integer] | None = None) -> csr_array:
    """Counts (C, C) of the pairs (i, j), sparse, as 11,316 classes have 128 million pairs."""
    if i is None or j is None:
        return csr_array((classes, classes), dtype=np.int64)
    return csr_array((np.ones(len(i), np.int64), (i, j)), shape=(classes, classes))


def _entries(table: csr_array, i: Ints, j: Ints) -> Floats:
    """The numbers at (i, j), (m,) each; 0 where the table holds none."""
    held = table.tocoo()
    keys, wanted = held.row.astype(np.int64) * table.shape[1] + held.col, i * table.shape[1] + j
    order = np.argsort(keys)
    values = np.append(held.data[order], 0.0)
    keys = np.append(keys[order], -1)
    place = np.searchsorted(keys[:-1], wanted)
    return np.asarray(np.where(keys[place] == wanted, values[place], 0.0), np.float64)


def _parts(rows: Ints, width: int) -> list[Ints]:
    step = max(1, CHUNK // width)
    return [rows[start : start + step] for start in range(0, len(rows), step)]
