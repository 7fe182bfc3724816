"""Retrieval scores, which count the nearest neighbours that share the label of the query.

With rel_i = 1 if the i-th nearest item has the query's label, and R the number of gallery items with that label:

    R@K    = max(rel_1..rel_K)              P@K = (1/K) sum_{i<=K} rel_i        R2@K = (1/R) sum_{i<=K} rel_i
    P@R    = (1/R) sum_{i<=R} rel_i         AP@R = (1/R) sum_{i<=R} rel_i P@i   MAP@R = mean AP@R
    kNN(3) = 1 if rel_1 + rel_2 + rel_3 >= 2

References: Musgrave, Belongie, Lim, "A Metric Learning Reality Check" (2020), for MAP@R; Karaman 2021, section 2;
Zabihzadeh et al. (2021), section 5.2, for kNN(3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from dmlcore.metrics import device_search
from dmlcore.metrics.nearest_neighbours import CHUNK, SPARE, NeighbourSearch, as_matrix
from dmlcore.typing import Bools, Floats, Ints

KNN = 3  # neighbours that vote


@dataclass(frozen=True)
class RetrievalScores:
    """Retrieval scores: means over the scored queries, in 0..1, or None if no query could be scored.

    `queries` is the number of scored queries. `skipped` is the number of queries without a match in the gallery (R =
    0), which are excluded from the means but remain in the gallery. The per-query arrays (Q,) have the order of the
    embeddings and hold NaN for skipped queries.
    """

    recall_at: dict[int, float | None]
    precision_at: dict[int, float | None]
    recall_fraction_at: dict[int, float | None]  # R2@K, the textbook recall; not the R@K of metric learning
    r_precision: float | None
    map_at_r: float | None
    knn3: float | None  # at least two of the three nearest neighbours share the query's label; always 0 if R = 1
    # majority vote of the three nearest neighbours; if their labels all differ, the nearest one decides
    knn3_majority: float | None
    queries: int
    skipped: int
    per_query_average_precision: Floats = field(repr=False, compare=False)
    per_query_r_precision: Floats = field(repr=False, compare=False)
    per_query_recall_at_1: Floats = field(repr=False, compare=False)
    per_query_matches: Ints = field(repr=False, compare=False)  # R


def retrieval(
    embeddings: ArrayLike | torch.Tensor,
    labels: ArrayLike | torch.Tensor,
    *,
    gallery: ArrayLike | torch.Tensor | None = None,
    gallery_labels: ArrayLike | torch.Tensor | None = None,
    ks: Iterable[int] = (1, 2, 4, 8),
    device: torch.device | None = None,
) -> RetrievalScores:
    """Compute retrieval scores from the exact Euclidean nearest neighbours of each embedding.

    Ties in distance go to the lower index.

    Args:
        embeddings: Queries, shape (Q, D).
        labels: Shape (Q,), integers.
        gallery: Shape (N, D). By default the embeddings, and each query is then excluded from its own neighbours. If a
            gallery is given, no item is excluded.
        gallery_labels: Shape (N,); required with `gallery`.
        ks: Cutoffs K. A cutoff above the size of the gallery uses all of it; P@K still divides by K.
        device: Device of the search; the CPU by default.

    Returns:
        Means over the queries, and values per query.

    Raises:
        TypeError, ValueError: If an argument is invalid; the message names it.

    Example:
        The third query has no match, and one gallery item is closer to the second query than its own class.

        >>> from dmlcore import metrics
        >>> scores = metrics.retrieval(
        ...     [[0.0], [5.2], [9.0]], [0, 1, 2], gallery=[[0.1], [5.0], [6.0]], gallery_labels=[0, 0, 1], ks=(1, 2)
        ... )
        >>> scores.recall_at, scores.map_at_r
        ({1: 0.5, 2: 1.0}, 0.5)
        >>> scores.queries, scores.skipped
        (2, 1)

    Reference:
        Musgrave, Belongie & Lim 2020; Zabihzadeh et al. 2021, Sec. 5.2; the docstring of this module has the formulas.
    """
    if (gallery is None) != (gallery_labels is None):
        missing = "gallery" if gallery is None else "gallery_labels"
        raise ValueError(f"{missing} is missing: gallery and gallery_labels belong together")
    cutoffs = _cutoffs(ks)
    embeddings = as_matrix("embeddings", embeddings)
    labels = class_ids("labels", labels, len(embeddings))
    if gallery is None or gallery_labels is None:
        search, others = device_search.search(embeddings, exclude_self=True, device=device), labels
    else:
        gallery = as_matrix("gallery", gallery)
        search, others = (
            device_search.search(embeddings, gallery, exclude_self=False, device=device),
            class_ids("gallery_labels", gallery_labels, len(gallery)),
        )
    # Class numbers, starting at 0, of the gallery and of the queries. R is the number of gallery matches of each query.
    codes, wanted = _codes(others, labels)
    matches = _matches(codes, wanted) - search.exclude_self
    per_query = _per_query(search, codes, wanted, matches, cutoffs)
    scored = matches > 0
    hits, r = per_query.hits[scored], matches[scored]
    return RetrievalScores(
        recall_at={cutoff: _mean(hits[:, i] > 0) for i, cutoff in enumerate(cutoffs)},
        precision_at={cutoff: _mean(hits[:, i] / cutoff) for i, cutoff in enumerate(cutoffs)},
        recall_fraction_at={cutoff: _mean(hits[:, i] / r) for i, cutoff in enumerate(cutoffs)},
        r_precision=_mean(per_query.r_precision[scored]),
        map_at_r=_mean(per_query.average_precision[scored]),
        knn3=_mean(per_query.two_of_three[scored]),
        knn3_majority=_mean(per_query.majority[scored]),
        queries=int(scored.sum()),
        skipped=int((~scored).sum()),
        per_query_average_precision=per_query.average_precision,
        per_query_r_precision=per_query.r_precision,
        per_query_recall_at_1=per_query.first,
        per_query_matches=matches,
    )


class _PerQuery(NamedTuple):
    """Scores of each query, shape (Q,) unless stated otherwise; NaN for a query without a match."""

    hits: Floats  # number of matches among the first K items, for each cutoff K; shape (Q, number of cutoffs)
    r_precision: Floats
    average_precision: Floats
    first: Floats
    two_of_three: Floats
    majority: Floats


def _per_query(
    search: NeighbourSearch,
    codes: NDArray[np.int32],
    wanted: NDArray[np.int32],
    matches: Ints,
    cutoffs: Sequence[int],
) -> _PerQuery:
    def marks(rows: Ints, items: Ints) -> NDArray[np.int32]:
        """Return class numbers of the first three items, for kNN(3); for later items -1 (match) or -2 (no match)."""
        item_codes = codes[items]
        item_codes[:, KNN:] = -2 + (item_codes[:, KNN:] == wanted[rows, None])
        return item_codes

    hits = np.full((len(matches), len(cutoffs)), np.nan)
    r_precision, average_precision, first, two_of_three, majority = np.full((5, len(matches)), np.nan)

    # a function, so that the arrays of one chunk are freed before the next search
    def score(rows: Ints, k: int) -> None:
        ranked = search.ranked(rows, k, mark=marks)
        relevant = codes[ranked] == wanted[rows, None]
        first[rows] = relevant[:, 0]
        two_of_three[rows], majority[rows] = _nearest_three(relevant, codes[ranked[:, :KNN]])
        # The matches are few: only they are counted. `number` is their position among the matches of their query.
        row, at = np.nonzero(relevant)
        number = np.arange(1, len(row) + 1) - np.searchsorted(row, np.arange(len(rows)))[row]
        r = matches[rows]
        within = at < r[row]
        row, precisions = row[within], number[within] / (at[within] + 1)
        r_precision[rows] = np.bincount(row, minlength=len(rows)) / r
        # AP@R is the sum of the precisions at the first R ranks that hold a match, divided by R.
        average_precision[rows] = np.bincount(row, precisions, minlength=len(rows)) / r
        for i, cutoff in enumerate(cutoffs):
            hits[rows, i] = np.count_nonzero(relevant[:, :cutoff], axis=1)

    # Queries with many matches need long lists. Each chunk groups queries that need lists of similar length.
    for rows, k in _plan(matches, max(KNN, *cutoffs), search.available):
        score(rows, k)

    return _PerQuery(hits, r_precision, average_precision, first, two_of_three, majority)


def _plan(matches: Ints, cutoff: int, available: int) -> Iterator[tuple[Ints, int]]:
    """Yield chunks of query indices, and the number k of neighbours that each chunk needs.

    Only queries with a match are included, in descending order of their number of matches.
    """
    order = np.argsort(-matches, kind="stable")[: int((matches > 0).sum())]
    start = 0
    while start < len(order):
        k = min(max(cutoff, int(matches[order[start]])), available)
        stop = start + max(1, CHUNK // (k + SPARE))
        yield np.sort(order[start:stop]), k
        start = stop


@dataclass(frozen=True, eq=False)
class ClassScores:
    """Mean retrieval scores of the queries of each class, shape (C,), in ascending order of the labels."""

    labels: Ints
    queries: Ints  # number of scored queries per class; classes without scored queries are omitted
    map_at_r: Floats
    recall_at_1: Floats


def per_class(scores: RetrievalScores, labels: ArrayLike | torch.Tensor) -> ClassScores:
    """Compute the mean retrieval scores of each class.

    Args:
        scores: Scores of all queries.
        labels: Labels of the queries, shape (Q,).

    Returns:
        Scores of the classes that have at least one scored query.

    Raises:
        TypeError, ValueError: If the labels are not Q integers.
    """
    labels = class_ids("labels", labels, len(scores.per_query_matches))
    scored = scores.per_query_matches > 0
    classes, place, queries = np.unique(labels[scored], return_inverse=True, return_counts=True)
    sums = [np.bincount(place, x[scored]) for x in (scores.per_query_average_precision, scores.per_query_recall_at_1)]
    return ClassScores(classes, queries, sums[0] / queries, sums[1] / queries)


def _nearest_three(relevant: Bools, codes: NDArray[np.int32]) -> tuple[Bools, Bools]:
    """Return two masks (n,) of correctly classified queries: by kNN(3), and by kNN(3) with a majority vote.

    Args:
        relevant: Mask of the nearest items that match the query, shape (n, k).
        codes: Class numbers of the nearest items, shape (n, up to 3).
    """
    two = relevant[:, :KNN].sum(axis=1) >= 2
    outvoted = codes[:, 1] == codes[:, 2] if codes.shape[1] == KNN else np.zeros(len(codes), bool)
    return two, two | (relevant[:, 0] & ~outvoted)


def _codes(others: Ints, labels: Ints) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return class numbers, starting at 0, of the gallery (N,) and of the queries (Q,).

    The number of a query is -1 if its class is not in the gallery.
    """
    values, codes = np.unique(others, return_inverse=True)
    place = np.minimum(np.searchsorted(values, labels), len(values) - 1)
    return codes.astype(np.int32), np.where(values[place] == labels, place, -1).astype(np.int32)


def _matches(codes: NDArray[np.int32], wanted: NDArray[np.int32]) -> Ints:
    """Count the gallery items that have the class of each query, shape (Q,)."""
    return np.where(wanted >= 0, np.bincount(codes)[wanted], 0)


def class_ids(name: str, value: ArrayLike | torch.Tensor, items: int) -> Ints:
    """Return `value` as an int64 array of shape (items,).

    Raises:
        TypeError, ValueError: If it does not hold integers or has another shape; the message starts with `name`.
    """
    array = value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers (class ids), got dtype {array.dtype}")
    if array.shape != (items,):
        raise ValueError(f"{name} must have shape ({items},), one per item, got {array.shape}")
    if array.dtype.kind == "u" and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} must fit into int64, got {array.max()}")
    return array.astype(np.int64)


def _cutoffs(ks: Iterable[int]) -> list[int]:
    cutoffs = list(ks)
    for cutoff in cutoffs:
        if isinstance(cutoff, bool) or not isinstance(cutoff, (int, np.integer)) or cutoff < 1:
            raise ValueError(f"ks must hold integers of at least 1, got {cutoff!r}")
    return sorted({int(cutoff) for cutoff in cutoffs})


def _mean(values: Floats | Bools) -> float | None:
    return float(values.mean()) if len(values) else None
