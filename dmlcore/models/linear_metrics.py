"""Linear metric learning on features: linear layers whose Euclidean distances are Mahalanobis distances.

The Mahalanobis distance with matrix M = L^T L is |L x - L y|, so each method fits one linear layer L to the features.
The solvers are those of scikit-learn.
"""

from __future__ import annotations

import numpy as np

from dmlcore.metrics import nearest
from dmlcore.models import whitening
from dmlcore.typing import Floats, Ints, Singles

METHODS = ("pca", "lda", "nca", "whitening")
MOST_SAMPLES = 4000  # largest number of samples for NCA, whose gradient compares all pairs in each iteration
MOST_ITERATIONS = 100
LEAST = 1e-4  # directions with a smaller singular value, relative to the largest one, are left out


def fit(
    method: str,
    features: Singles,
    labels: Ints,
    dimension: int,
    *,
    seed: int = 0,
    shrinkage: float = whitening.SHRINKAGE,
) -> tuple[Floats, Floats]:
    """Fit a method to features and return weight (dimension, F) and bias (dimension,) of its linear layer.

        pca: principal components
        lda: linear discriminants with Ledoit-Wolf shrinkage, at most classes - 1 of them
        whitening: within-class whitening with shrinkage (`whitening.fit`), and the principal components of its results
        nca: neighbourhood components, at most 100 iterations of L-BFGS, starting from linear discriminants if there are
            enough of them, else from principal components

    NCA uses at most 4,000 samples, drawn at random from `seed`. Features are scaled so that squared distances to the
    nearest sample are 1 on average; otherwise the soft-max of NCA is flat or its gradient vanishes. If a method finds
    fewer than `dimension` directions, the remaining outputs are 0. Every output has mean 0.

    Args:
        method: A name in METHODS.
        features: Features, (N, F).
        labels: Integer labels, (N,).
        dimension: Number of outputs.
        seed: Seed for drawing the samples.
        shrinkage: Regularisation of the whitening, positive, see `whitening.fit`.

    Raises:
        ValueError: If the method is unknown, there is a single class, or no class has two samples.

    Reference:
        Pearson 1901; Fisher 1936, Rao 1948; Goldberger, Roweis, Hinton & Salakhutdinov 2004.
    """
    if method not in METHODS:
        raise ValueError(f"unknown linear method {method!r}; known: {', '.join(METHODS)}")
    classes, sizes = np.unique(labels, return_counts=True)
    if method != "pca" and (len(classes) < 2 or sizes.max() < 2):
        raise ValueError(f"{method} needs two classes, one of them with two samples")
    points = np.asarray(features, np.float64)
    # a whitening also keeps directions that the samples do not span, since samples of other classes differ there
    count = min(dimension, points.shape[1], *([] if method == "whitening" else [len(points)]))
    rows = (
        _whitened(points, labels, count, shrinkage)
        if method == "whitening"
        else _fitted(method, points, labels, count, seed)
    )
    weight = np.zeros((dimension, points.shape[1]))
    weight[: len(rows)] = rows[:dimension]
    return weight, -weight @ points.mean(0)


def _fitted(method: str, points: Floats, labels: Ints, count: int, seed: int) -> Floats:
    if method == "lda":
        from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

        # Fitted in the original axes: shrinkage first standardises each axis, which would amplify noise in principal
        # axes.
        scalings = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto").fit(points, labels).scalings_
        rows: Floats = scalings.T[: min(count, len(np.unique(labels)) - 1)]
        return rows
    from sklearn.decomposition import PCA

    principal = PCA(random_state=seed).fit(points)
    # Directions with almost no variance are dropped; scaling them to unit variance would exceed the range of float32.
    axes: Floats = principal.components_[principal.singular_values_ > LEAST * principal.singular_values_[0]]
    if method == "pca":
        return axes[:count]
    from sklearn.neighbors import NeighborhoodComponentsAnalysis

    points, count = points @ axes.T, min(count, len(axes))
    if len(points) > MOST_SAMPLES:
        drawn = np.sort(np.random.default_rng(seed).choice(len(points), MOST_SAMPLES, replace=False))
        points, labels = points[drawn], labels[drawn]
    scale = float(np.sqrt(np.square(nearest(points, k=1)[0]).mean())) or 1.0
    solver = NeighborhoodComponentsAnalysis(count, init="auto", max_iter=MOST_ITERATIONS, random_state=seed)
    rows = solver.fit(points / scale, labels).components_ / scale
    return rows @ axes


def _whitened(points: Floats, labels: Ints, count: int, shrinkage: float) -> Floats:
    """Return the `count` rows of a within-class whitening that keep most of the variance, largest first."""
    weight = whitening.inverse_root(points - whitening.class_means(points, labels), shrinkage)
    whitened = (points - points.mean(0)) @ weight
    _, principal = np.linalg.eigh(whitened.T @ whitened)
    rows: Floats = (weight @ principal[:, ::-1][:, :count]).T
    return rows
