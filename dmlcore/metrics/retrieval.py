"""Retrieval scores: how many of a query's nearest neighbours share its label.

With rel_i = 1 if the i-th nearest item has the query's label, and R such items in the gallery:

    R@K    = max(rel_1..rel_K)              P@K = (1/K) sum_{i<=K} rel_i        R2@K = (1/R) sum_{i<=K} rel_i
    P@R    = (1/R) sum_{i<=R} rel_i         AP@R = (1/R) sum_{i<=R} rel_i P@i   MAP@R = mean AP@R

Source: Musgrave, Belongie, Lim, "A Metric Learning Reality Check" (2020), for MAP@R; the 2021 thesis, section 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from dmlcore.metrics.neighbours import CHUNK, SPARE, Floats, Ints, Search, matrix


@dataclass(frozen=True)
class RetrievalScores:
    """Means over the scored queries, in 0..1; None where no query could be scored.

    `queries` were scored; `skipped` had no match in the gallery (R = 0): they count in no mean but stay in the gallery.
    The per-query arrays (Q,) follow the order of the embeddings and hold NaN for skipped queries.
    """

    recall_at: dict[int, float | None]
    precision_at: dict[int, float | None]
    recall_fraction_at: dict[int, float | None]  # R2@K, the textbook recall; not the R@K of metric learning
    r_precision: float | None
    map_at_r: float | None
    queries: int
    skipped: int
    per_query_average_precision: Floats = field(repr=False, compare=False)
    per_query_r_precision: Floats = field(repr=False, compare=False)
    per_query_matches: Ints = field(repr=False, compare=False)  # R


def retrieval(
    embeddings: ArrayLike | torch.Tensor,
    labels: ArrayLike | torch.Tensor,
    *,
    gallery: ArrayLike | torch.Tensor | None = None,
    gallery_labels: ArrayLike | torch.Tensor | None = None,
    ks: Iterable[int] = (1, 2, 4, 8),
) -> RetrievalScores:
    """Score the neighbours of every embedding, by exact Euclidean distance with ties by index.

    Shapes: embeddings (Q, D) and labels (Q,) integers; gallery (N, D) and gallery_labels (N,), together or not at all.
    Without a gallery the embeddings are their own and each query is left out of its own list; with one nothing is left
    out. A K beyond the gallery counts all of it (and P@K still divides by K). Raises ValueError or TypeError naming
    the argument.
    """
    if (gallery is None) != (gallery_labels is None):
        missing = "gallery" if gallery is None else "gallery_labels"
        raise ValueError(f"{missing} is missing: gallery and gallery_labels belong together")
    cutoffs = _cutoffs(ks)
    embeddings = matrix("embeddings", embeddings)
    labels = _labels("labels", labels, len(embeddings))
    if gallery is None or gallery_labels is None:
        search, others = Search(embeddings, exclude_self=True), labels
    else:
        gallery = matrix("gallery", gallery)
        search, others = (
            Search(embeddings, gallery, exclude_self=False),
            _labels("gallery_labels", gallery_labels, len(gallery)),
        )
    matches = _matches(labels, others) - search.exclude_self

    def same_label(rows: Ints, items: Ints) -> NDArray[np.bool_]:
        same: NDArray[np.bool_] = others[items] == labels[rows, None]
        return same

    hits = np.full((len(labels), len(cutoffs)), np.nan)
    r_precision, average_precision = np.full((2, len(labels)), np.nan)
    for rows, k in _plan(matches, max(cutoffs, default=1), search.available):
        relevant = same_label(rows, search.ranked(rows, k, mark=same_label))
        found = np.cumsum(relevant, axis=1)
        r, place = matches[rows], np.arange(1, k + 1)
        r_precision[rows] = found[np.arange(len(rows)), r - 1] / r
        average_precision[rows] = np.where(relevant & (place <= r[:, None]), found / place, 0.0).sum(axis=1) / r
        hits[rows] = found[:, [min(cutoff, k) - 1 for cutoff in cutoffs]]

    scored = matches > 0
    hits, r = hits[scored], matches[scored]
    return RetrievalScores(
        recall_at={cutoff: _mean(hits[:, i] > 0) for i, cutoff in enumerate(cutoffs)},
        precision_at={cutoff: _mean(hits[:, i] / cutoff) for i, cutoff in enumerate(cutoffs)},
        recall_fraction_at={cutoff: _mean(hits[:, i] / r) for i, cutoff in enumerate(cutoffs)},
        r_precision=_mean(r_precision[scored]),
        map_at_r=_mean(average_precision[scored]),
        queries=int(scored.sum()),
        skipped=int((~scored).sum()),
        per_query_average_precision=average_precision,
        per_query_r_precision=r_precision,
        per_query_matches=matches,
    )


def _plan(matches: Ints, cutoff: int, available: int) -> Iterator[tuple[Ints, int]]:
    """Cut the queries with matches into parts of bounded size, largest classes first, each with the k it needs."""
    order = np.argsort(-matches, kind="stable")[: int((matches > 0).sum())]
    start = 0
    while start < len(order):
        k = min(max(cutoff, int(matches[order[start]])), available)
        stop = start + max(1, CHUNK // (k + SPARE))
        yield np.sort(order[start:stop]), k
        start = stop


def _matches(labels: Ints, others: Ints) -> Ints:
    """How many of `others` equal each label, shapes (Q,), (N,) -> (Q,)."""
    values, counts = np.unique(others, return_counts=True)
    place = np.minimum(np.searchsorted(values, labels), len(values) - 1)
    return np.where(values[place] == labels, counts[place], 0)


def _labels(name: str, value: ArrayLike | torch.Tensor, items: int) -> Ints:
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


def _mean(values: Floats | NDArray[np.bool_]) -> float | None:
    return float(values.mean()) if len(values) else None
