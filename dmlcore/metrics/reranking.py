"""Retrieval scores of queries whose neighbours are restricted to given candidates."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dmlcore.typing import Bools, Ints, Singles

ROWS = 1024  # number of queries that are processed at a time


@dataclass(frozen=True)
class Reranking:
    """Recall at K (R@K) of retrieval candidates, sorted by distance, in the order given, and in random order.

    All values are in 0..1 and are means over the queries that have a match in the gallery. K is at most the number of
    candidates.

    Attributes:
        recall_at: R@K of the candidates sorted by distance.
        before_at: R@K of the candidates in the order given.
        chance_at: Expected R@K of the candidates in random order.
        reach: Share of the queries with a match among their candidates.
        queries: Number of queries that have a match in the gallery.
    """

    recall_at: dict[int, float]
    before_at: dict[int, float]
    chance_at: dict[int, float]
    reach: float
    queries: int


def rerank(
    queries: Singles,
    labels: Ints,
    candidates: Ints,
    ks: Iterable[int],
    *,
    gallery: Singles | None = None,
    gallery_labels: Ints | None = None,
) -> Reranking:
    """Sort the candidates of each query by Euclidean distance, and compute R@K before and after sorting.

    Candidates at equal distance keep the order given. R@K in random order is exact: of K candidates with m matches,
    none is among the first k with probability C(K - m, k) / C(K, k).

    Args:
        queries: Shape (Q, D).
        labels: Labels of the queries, shape (Q,).
        candidates: Indices of gallery items, shape (Q, K), in the order from which `before_at` is computed.
        ks: Cutoffs of R@K; those above the number of candidates are ignored.
        gallery: Shape (N, D). By default the queries; a query must then not be its own candidate.
        gallery_labels: Shape (N,).

    Raises:
        ValueError: If no query has a match in the gallery, or no cutoff is in 1..K.

    Example:
        >>> import numpy as np
        >>> from dmlcore import metrics
        >>> points, labels = np.array([[0.0], [1.0], [3.0]], np.float32), np.array([0, 1, 0])
        >>> metrics.rerank(points, labels, np.array([[2, 1], [0, 2], [0, 1]]), ks=[1]).recall_at
        {1: 0.0}

    Reference:
        Evaluation of Can 2018, Table 3.3.
    """
    own = gallery is None or gallery_labels is None
    gallery, gallery_labels = (
        (queries, labels) if gallery is None or gallery_labels is None else (gallery, gallery_labels)
    )
    count = candidates.shape[1]
    wanted = sorted({k for k in ks if 1 <= k <= count})
    if not wanted:
        raise ValueError(f"K: {list(ks)} requested, but there are only {count} candidates per query. Use a smaller K")
    matches = gallery_labels[candidates] == labels[:, None]
    sizes = dict(zip(*(a.tolist() for a in np.unique(gallery_labels, return_counts=True)), strict=True))
    asked = np.array([sizes.get(label, 0) > own for label in labels.tolist()])
    if not asked.any():
        raise ValueError("no query has a match in the gallery")
    ordered = np.empty_like(matches)
    for start in range(0, len(queries), ROWS):
        rows = slice(start, start + ROWS)
        apart = queries[rows, None].astype(np.float64) - gallery[candidates[rows]]
        order = np.argsort(np.square(apart).sum(2), axis=1, kind="stable")
        ordered[rows] = np.take_along_axis(matches[rows], order, axis=1)
    hits = matches[asked].sum(1)
    chance = {k: float(np.mean([1 - math.comb(count - m, k) / math.comb(count, k) for m in hits])) for k in wanted}
    return Reranking(
        recall_at=_recall(ordered[asked], wanted),
        before_at=_recall(matches[asked], wanted),
        chance_at=chance,
        reach=float((hits > 0).mean()),
        queries=int(asked.sum()),
    )


def _recall(matches: Bools, ks: Iterable[int]) -> dict[int, float]:
    return {k: float(matches[:, :k].any(1).mean()) for k in ks}
