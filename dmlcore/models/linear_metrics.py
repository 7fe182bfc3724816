"""Linear metric learning on features: the layer whose Euclidean distances are the Mahalanobis distances of a method.

A Mahalanobis distance is |L x - L y| with M = L^T L, so that each method is one linear layer L of the features. The
solvers are scikit-learn's.
"""

from __future__ import annotations

import numpy as np

from dmlcore.metrics import nearest
from dmlcore.typing import Floats, Ints, Singles

METHODS = ("pca", "lda", "nca")
MOST_SAMPLES = 4000  # that neighbourhood components are fitted to: their gradient compares every pair at each step
MOST_ITERATIONS = 100
LEAST = 1e-4  # of the largest singular value: directions below are left out


def fit(method: str, features: Singles, labels: Ints, dimension: int, *, seed: int = 0) -> tuple[Floats, Floats]:
    """Fit a method to features (N, F) of labels (N,); weight (dimension, F) and bias (dimension,) of its layer.

    pca: principal components. lda: linear discriminants with Ledoit-Wolf shrinkage, classes - 1 of them at most.
    nca: neighbourhood components, at most 100 iterations of L-BFGS from linear discriminants where there are as many
    as outputs, else from principal components; on 4,000 samples drawn by the seed where there are more, of features
    scaled so that squared distances to the nearest are 1 on average, as its soft-max is flat or still elsewhere. What a
    method has fewer of than `dimension` is left 0. Every output has mean 0.

    Raises: ValueError for an unknown method, a single class, or no two samples of one.
    Source: Pearson 1901; Fisher 1936, Rao 1948; Goldberger, Roweis, Hinton & Salakhutdinov 2004.
    """
    if method not in METHODS:
        raise ValueError(f"unknown linear method {method!r}; known: {', '.join(METHODS)}")
    classes, sizes = np.unique(labels, return_counts=True)
    if method != "pca" and (len(classes) < 2 or sizes.max() < 2):
        raise ValueError(f"{method} needs two classes, one of them with two samples")
    points = np.asarray(features, np.float64)
    count = min(dimension, points.shape[1], len(points))
    rows = _fitted(method, points, labels, count, seed)
    weight = np.zeros((dimension, points.shape[1]))
    weight[: len(rows)] = rows[:dimension]
    return weight, -weight @ points.mean(0)


def _fitted(method: str, points: Floats, labels: Ints, count: int, seed: int) -> Floats:
    if method == "lda":
        from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

        # In the axes of the features: its shrinkage first gives each the same variance, noise among principal axes too.
        scalings = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto").fit(points, labels).scalings_
        rows: Floats = scalings.T[: min(count, len(np.unique(labels)) - 1)]
        return rows
    from sklearn.decomposition import PCA

    principal = PCA(random_state=seed).fit(points)
    # Directions in which nothing varies would be blown up beyond what float32 holds.
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
