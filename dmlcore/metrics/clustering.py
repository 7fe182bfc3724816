"""Clustering scores: k-means with as many clusters as classes, compared with the classes.

With n_ab of N samples in cluster a and class b, and H the entropies and I the mutual information of both partitions:

    NMI = I / ((H_a + H_b) / 2)        F1 = 2 TP / (2 TP + FP + FN) over pairs of samples, TP = pairs together in both

Reference: Manning, Raghavan, Schütze, "Introduction to Information Retrieval" (2008), section 16.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import faiss
import numpy as np
import torch
from numpy.typing import ArrayLike

from dmlcore.metrics.nearest_neighbours import as_matrix
from dmlcore.metrics.retrieval import class_ids
from dmlcore.typing import Array, Ints

MOST_WORK = 1.28e10  # limit on samples x clusters x dimensions per k-means iteration: 10^8 distances in 128 dimensions
ROUNDS = 20  # k-means iterations
STARTS = 4  # number of random starts of k-means, of which the best is kept
CHEAP = 1e9  # k-means uses STARTS random starts if samples x clusters x dimensions is at most this number, else one


@dataclass(frozen=True)
class ClusteringScores:
    """Agreement between k-means clusters and classes: NMI and pairwise F1, each in 0..1."""

    nmi: float
    f1: float


def clustering(
    embeddings: ArrayLike | torch.Tensor, labels: ArrayLike | torch.Tensor, seed: int = 0
) -> ClusteringScores:
    """Cluster embeddings by k-means into as many clusters as there are classes, and compare clusters and classes.

    Runs 20 iterations of faiss in float32 from randomly drawn samples; for small data, keeps the best of four such
    starts. The running time is not limited, so check `is_affordable` first.

    Args:
        embeddings: Shape (N, D).
        labels: Shape (N,), integers.
        seed: Seed for the random starts.

    Returns:
        NMI and pairwise F1.

    Raises:
        TypeError, ValueError: If an argument is invalid; the message names it.

    Example:
        >>> from dmlcore import metrics
        >>> embeddings = [[0.0], [0.1], [5.0], [5.1]]
        >>> metrics.clustering(embeddings, [0, 0, 1, 1], seed=0)
        ClusteringScores(nmi=1.0, f1=1.0)
        >>> metrics.clustering(embeddings, [0, 1, 0, 1], seed=0)
        ClusteringScores(nmi=0.0, f1=0.0)

    Reference:
        Manning, Raghavan & Schütze 2008, Sec. 16.3; the docstring of this module has the formulas.
    """
    points = as_matrix("embeddings", embeddings)
    labels = class_ids("labels", labels, len(points))
    clusters = k_means(points, len(np.unique(labels)), seed)
    return ClusteringScores(nmi=nmi(clusters, labels), f1=pairwise_f1(clusters, labels))


def is_affordable(samples: int, classes: int, dimensions: int) -> bool:
    """Return True if `clustering` is expected to take seconds; for Stanford Online Products it would take minutes."""
    return samples * classes * dimensions <= MOST_WORK


def k_means(points: ArrayLike, clusters: int, seed: int = 0) -> Ints:
    """Return the index (N,) of the k-means cluster of each of `points` (N, D), in 0..clusters-1.

    The result is deterministic on a given machine.
    """
    exact = as_matrix("points", points)
    if not 1 <= clusters <= len(exact):
        raise ValueError(f"clusters must be in 1..{len(exact)}, the number of points, got {clusters}")
    # centre first, because float32 loses digits of points far from the origin
    centred = exact - exact.mean(axis=0, dtype=np.float64)
    near = np.ascontiguousarray(centred / (np.abs(centred).max() or 1.0), np.float32)
    search = faiss.Kmeans(
        near.shape[1],
        clusters,
        niter=ROUNDS,
        nredo=STARTS if near.size * clusters <= CHEAP else 1,
        # keeps the seed within int32 even after faiss adds an offset for each further start
        seed=1 + seed % (2**31 - 2**16),
        min_points_per_centroid=1,  # prevents a warning about small clusters
        max_points_per_centroid=len(near),  # no subsampling
    )
    search.train(near)
    assignment: Ints = search.assign(near)[1].astype(np.int64)
    return assignment


def nmi(clusters: ArrayLike, labels: ArrayLike, *, average: Literal["arithmetic", "geometric"] = "arithmetic") -> float:
    """Compute the normalised mutual information of two partitions, in 0..1.

    The value is 1 if both partitions consist of a single set.

    Args:
        clusters: Shape (N,).
        labels: Shape (N,).
        average: "arithmetic" to divide I by (H_a + H_b) / 2, "geometric" to divide by sqrt(H_a H_b).

    Raises:
        ValueError: If an argument is invalid; the message names it.
    """
    from sklearn.metrics import normalized_mutual_info_score  # slow to import

    return float(normalized_mutual_info_score(*_partitions(clusters, labels), average_method=average))


def pairwise_f1(clusters: ArrayLike, labels: ArrayLike) -> float:
    """Compute F1 over pairs of samples, with "same cluster" as the prediction of "same class".

    The value is 1 if all clusters and all classes have a single sample.

    Args:
        clusters: Shape (N,).
        labels: Shape (N,).

    Raises:
        ValueError: If an argument is invalid; the message names it.
    """
    from sklearn.metrics.cluster import pair_confusion_matrix  # slow to import

    (_, fp), (fn, tp) = pair_confusion_matrix(*_partitions(clusters, labels)).tolist()
    return 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else 1.0


def _partitions(clusters: ArrayLike, labels: ArrayLike) -> tuple[Array, Array]:
    """Return the arguments as `labels_true` and `labels_pred` of scikit-learn."""
    clusters, labels = np.asarray(clusters), np.asarray(labels)
    if clusters.ndim != 1 or clusters.shape != labels.shape or not len(labels):
        raise ValueError(f"clusters and labels must be (N,) with N > 0, got shapes {clusters.shape}, {labels.shape}")
    return labels, clusters
