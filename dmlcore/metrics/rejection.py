"""Rejection of unknown classes: a query whose similarity to the gallery is below a threshold belongs to no known class.

With the similarity score of each query, at a threshold t:

    CCR(t) = queries of known classes that are accepted and get the right class / queries of known classes
    FPR(t) = accepted queries of unknown classes / queries of unknown classes

OSCR is the area under CCR as a function of FPR. AUROC ignores the class: it compares known with unknown queries only.

Reference: Dhamija, Günther, Boult, "Reducing Network Agnostophobia" (2018), Sec. 4, for CCR and FPR.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike

from dmlcore.metrics.nearest_neighbours import as_matrix, split_rows
from dmlcore.metrics.retrieval import class_ids
from dmlcore.typing import Bools, Floats, Ints

Score = Literal["nearest", "class mean", "k-th neighbour"]


@dataclass(frozen=True)
class RejectionScores:
    """Scores of the separation of known from unknown queries, each in 0..1, and the arrays behind them, (Q,)."""

    auroc: float  # probability that a known query has a higher similarity than an unknown one
    oscr: float
    fpr_at_95_tpr: float  # share of accepted unknown queries if 95 % of the known ones are accepted
    similarities: Floats = field(repr=False, compare=False)
    predicted: Ints = field(repr=False, compare=False)  # label of the most similar sample or class
    known: Bools = field(repr=False, compare=False)  # True if the gallery has the class of the query


def rejection(
    gallery: ArrayLike | torch.Tensor,
    gallery_labels: ArrayLike | torch.Tensor,
    queries: ArrayLike | torch.Tensor,
    query_labels: ArrayLike | torch.Tensor,
    *,
    score: Score = "nearest",
    k: int = 5,
) -> RejectionScores:
    """Score the rejection of queries whose class is not in the gallery, by cosine similarity.

    Args:
        gallery: Enrolled samples of known classes, shape (N, D), without zero rows.
        gallery_labels: Shape (N,), integers.
        queries: Shape (Q, D), without zero rows; of known and of unknown classes.
        query_labels: Shape (Q,), integers.
        score: Similarity of a query to the gallery: to the nearest sample, to the nearest mean of the unit vectors of
            a class, or to the k-th nearest sample. The predicted class is that of the nearest sample or mean.
        k: Number of the neighbour for "k-th neighbour", in 1..N; not used otherwise.

    Raises:
        TypeError, ValueError: If an argument is invalid, or all queries are known, or none is.
    """
    from sklearn.metrics import roc_auc_score, roc_curve  # slow to import

    if score not in get_args(Score):
        raise ValueError(f"score must be one of {', '.join(get_args(Score))}, got {score!r}")
    enrolled, asked = _directions("gallery", gallery), _directions("queries", queries)
    if enrolled.shape[1] != asked.shape[1]:
        raise ValueError(f"queries must have the {enrolled.shape[1]} dimensions of gallery, got {asked.shape[1]}")
    labels = class_ids("gallery_labels", gallery_labels, len(enrolled))
    wanted = class_ids("query_labels", query_labels, len(asked))
    if score == "k-th neighbour" and not 1 <= k <= len(enrolled):
        raise ValueError(f"k must be in 1..{len(enrolled)}, the number of samples in the gallery, got {k}")
    known = np.isin(wanted, labels)
    if known.all() or not known.any():
        missing = "an unknown class" if known.all() else "a known class"
        raise ValueError(f"query_labels must hold known and unknown classes, but no query is of {missing}")
    if score == "class mean":
        names, codes = np.unique(labels, return_inverse=True)
        sums = np.zeros((len(names), enrolled.shape[1]))
        np.add.at(sums, codes, enrolled)
        enrolled, labels = _directions("class means", sums), names
    similarities, predicted = np.empty(len(asked)), np.empty(len(asked), np.int64)
    place = k if score == "k-th neighbour" else 1
    for rows in split_rows(np.arange(len(asked)), len(enrolled)):
        table = asked[rows] @ enrolled.T
        predicted[rows] = labels[table.argmax(axis=1)]
        similarities[rows] = np.partition(table, -place, axis=1)[:, -place]
    fpr, tpr, _ = roc_curve(known, similarities, drop_intermediate=False)
    return RejectionScores(
        auroc=float(roc_auc_score(known, similarities)),
        oscr=_oscr(similarities, known, predicted == wanted),
        fpr_at_95_tpr=float(fpr[np.argmax(tpr >= 0.95)]),
        similarities=similarities,
        predicted=predicted,
        known=known,
    )


def _directions(name: str, value: ArrayLike | torch.Tensor) -> Floats:
    """Return rows of unit length, float64."""
    points = as_matrix(name, value).astype(np.float64)
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    if not lengths.all():
        raise ValueError(f"{name} must not be zero, but row {int(np.flatnonzero(lengths == 0)[0])} is")
    directions: Floats = points / lengths
    return directions


def _oscr(similarities: Floats, known: Bools, right: Bools) -> float:
    """Integrate CCR over FPR, with queries of equal similarity accepted together."""
    thresholds, places = np.unique(-similarities, return_inverse=True)
    correct = np.bincount(places, known & right, len(thresholds)).cumsum() / known.sum()
    false = np.bincount(places, ~known, len(thresholds)).cumsum() / (~known).sum()
    return float(np.trapezoid(np.concatenate([[0], correct]), np.concatenate([[0], false])))
