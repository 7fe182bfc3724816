"""Confusions between classes, counted over nearest neighbours, and an order that puts confused classes side by side."""

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
    """Counts of how often a query of class i finds a neighbour of class j.

    Args:
        classes: Labels (C,), ascending; rows and columns of the matrices use positions in this array.
        counts: Sparse matrix (C, C); rows are the classes of the queries, columns those of the neighbours.
        queries: Number of counted queries of each class, shape (C,).
    """

    classes: Ints  # (C,) labels, ascending
    counts: csr_array
    queries: Ints

    @cached_property
    def shares(self) -> csr_array:
        """Sparse matrix (C, C): share of the neighbours of queries of class i that belong to class j.

        Each row sums to 1, or to 0 if the class has no queries.
        """
        total = np.maximum(self.counts.sum(axis=1), 1)
        shares = csr_array(self.counts, dtype=np.float64)
        shares.data /= np.repeat(total, np.diff(shares.indptr))
        return shares

    @property
    def wrong(self) -> float:
        """Share of all counted neighbours whose class differs from that of the query; NaN if nothing was counted."""
        total = self.counts.sum()
        return float(1 - self.counts.diagonal().sum() / total) if total else float("nan")

    def matrix(self, places: ArrayLike | None = None) -> Floats:
        """Return `shares` as a dense array (c, c), restricted to the classes at positions `places` (c,) if given."""
        shares = self.shares if places is None else self.shares[np.asarray(places)][:, np.asarray(places)]
        return np.asarray(shares.todense(), np.float64)

    def place(self, label: int) -> int | None:
        """Return the position of a label in `classes`, or None if no class has this label."""
        at = int(np.searchsorted(self.classes, label))
        return at if at < len(self.classes) and self.classes[at] == label else None


@dataclass(frozen=True, eq=False)
class ClassPairs:
    """Pairs of classes, most confused first.

    All arrays have shape (m,). `first` and `second` are positions in `Confusions.classes`, with `first` < `second`.
    """

    first: Ints
    second: Ints
    there: Floats  # share of the neighbours of queries of class `first` that belong to `second`
    back: Floats
    mutual: Floats  # mean of both shares; if one class has no queries, the share of the other class


def of_neighbours(labels: ArrayLike, neighbours: ArrayLike, queries: ArrayLike, k: int) -> Confusions:
    """Count, for the queries of each class, the classes of their k nearest neighbours.

    Args:
        labels: Integers (n,).
        neighbours: Row indices (n, m) of the neighbours, nearest first.
        queries: Boolean mask (n,) of the rows that are counted as queries.
        k: Number of neighbours to count, between 1 and m.

    Raises:
        ValueError: The shapes do not match, or k is out of range.
    """
    labels, neighbours, queries = np.asarray(labels), np.asarray(neighbours), np.asarray(queries, bool)
    if neighbours.ndim != 2 or len(neighbours) != len(labels) or queries.shape != labels.shape:
        raise ValueError(
            f"labels {labels.shape}, neighbours {neighbours.shape} and queries {queries.shape} do not fit together"
        )
    if not 1 <= k <= neighbours.shape[1]:
        raise ValueError(f"k must be in 1..{neighbours.shape[1]} (number of stored neighbours), got {k}")
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
    """Count the classes of each query's R nearest neighbours, where R is the number of other samples of its class.

    The diagonal of `Confusions.shares` is then the R-precision of each class, averaged over its queries with weights R.
    R counts searched samples only, and queries with R = 0 are skipped.

    Args:
        embeddings: Array (n, D).
        labels: Integers (n,).
        is_gallery: Boolean mask (n,) of the rows that are searched; the other rows are the queries. If None, every row
            is a query and is searched.
        neighbours: Row indices (n, m) of precomputed neighbours, nearest first. They are used instead of a search if no
            R exceeds m.
        queries: Boolean mask (n,) of the queries to count; by default all. A subset is searched without copying the
            embeddings.
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
            # Only the classes of the neighbours are counted, so neighbours of one class may be returned in any order.
            nearest = codes[pool[search.ranked(asked[part], k, mark=lambda _, items: codes[pool[items]])]]
        counted = np.arange(k) < size[part, None]
        counts += _table(len(classes), np.repeat(codes[rows[part]], size[part]), nearest[counted])
    return Confusions(classes, counts, np.bincount(codes[rows], minlength=len(classes)))


def pairs(confusions: Confusions, most: int = 100) -> ClassPairs:
    """Return at most `most` pairs of different classes, highest mutual share first, ties ordered by class position."""
    shares = confusions.shares
    asked = (confusions.queries > 0).astype(np.float64)
    symmetric = (shares + shares.T).tocoo()
    above = symmetric.row < symmetric.col
    first, second = symmetric.row[above].astype(np.int64), symmetric.col[above].astype(np.int64)
    mutual = symmetric.data[above] / np.maximum(asked[first] + asked[second], 1)
    best = np.lexsort((second, first, -mutual))[:most]
    first, second, mutual = first[best], second[best], mutual[best]
    return ClassPairs(first, second, _entries(shares, first, second), _entries(shares, second, first), mutual)


def most_confused(confusions: Confusions, most: int) -> Ints:
    """Return the positions of the classes in the most confused pairs, at most `most` positions, ascending."""
    if len(confusions.classes) <= most:
        return np.arange(len(confusions.classes))
    best = pairs(confusions, most * most)
    _, when = np.unique(np.column_stack([best.first, best.second]).ravel(), return_index=True)
    sequence = np.column_stack([best.first, best.second]).ravel()[np.sort(when)]
    return np.sort(sequence[:most])


def select_around(confusions: Confusions, place: int, most: int) -> Ints:
    """Return the positions of class `place` and the classes most confused with it, at most `most` in all, ascending."""
    mutual = np.asarray(
        (confusions.shares[[place]] + confusions.shares.T.tocsr()[[place]]).todense(), np.float64
    ).ravel()
    mutual[place] = np.inf
    order = np.argsort(-mutual, kind="stable")[:most]
    return np.sort(order[mutual[order] > 0])


def order_classes(shares: Floats) -> Ints:
    """Return a permutation of the classes that places confused classes next to each other.

    Applies average linkage to the distances 1 - sqrt(s / max s), where s is the mean of the two shares of a class pair.
    The leaves are ordered so that the sum of the distances between adjacent leaves is as small as the tree allows. The
    square root lets small confusions also influence the order.

    Args:
        shares: Matrix (c, c) of neighbour shares, for example from `Confusions.matrix`.

    Returns:
        Class positions (c,) in the new order.

    Reference:
        Bar-Joseph, Gifford & Jaakkola (2001).
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
    """Return MAP@R and R@1 of each class from the scores of its queries.

    Args:
        labels: Integers (n,).
        average_precision: AP@R of each query (n,); NaN for queries without a score.
        first_right: Boolean mask (n,), True where the nearest neighbour has the class of the query.
    """
    labels, average_precision = np.asarray(labels), np.asarray(average_precision, np.float64)
    scored = ~np.isnan(average_precision)
    classes, place, queries = np.unique(labels[scored], return_inverse=True, return_counts=True)
    means = (
        np.bincount(place, np.asarray(per_query)[scored], minlength=len(classes)) / queries
        for per_query in (average_precision, first_right)
    )
    return ClassScores(classes, queries, *means)


def _table(classes: int, i: NDArray[np.integer] | None = None, j: NDArray[np.integer] | None = None) -> csr_array:
    """Return the counts of the pairs (i, j) as a matrix (C, C), sparse because C is up to 11,316."""
    if i is None or j is None:
        return csr_array((classes, classes), dtype=np.int64)
    return csr_array((np.ones(len(i), np.int64), (i, j)), shape=(classes, classes))


def _entries(table: csr_array, i: Ints, j: Ints) -> Floats:
    """Return the entries (m,) of a sparse matrix at (i, j), 0 where nothing is stored."""
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
