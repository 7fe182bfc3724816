"""Whitening of features: the strongest simple baseline that needs no training by gradients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dmlcore.typing import Floats, Ints, Singles

SHRINKAGE = 1.0  # added to each variance, relative to the mean variance; fixed, so no test score influences it


@dataclass(frozen=True)
class Whitening:
    """Linear map x -> (x / |x| - mean) @ weight of features (N, F), fitted by `fit`.

    Attributes:
        mean: Mean of the normalised features, (F,).
        weight: Matrix (F, F), see `inverse_root`.
    """

    mean: Floats
    weight: Floats

    def __call__(self, features: Singles) -> Singles:
        """Return the whitened features (N, F) with unit norm, so that Euclidean distances rank like cosines."""
        return normalise((normalise(features) - self.mean.astype(np.float32)) @ self.weight.astype(np.float32))


def fit(features: Singles, labels: Ints | None = None, *, shrinkage: float = SHRINKAGE) -> Whitening:
    """Fit a whitening to the features of a training split.

    The variance s of each principal direction of the covariance is increased to s + shrinkage * mean(s), so directions
    with little variance are not amplified without bound, and fewer samples than features are enough.

    Args:
        features: Features, (N, F); each row is divided by its norm.
        labels: Integer labels (N,): the covariance is that of the differences of samples from the mean of their class
            (within-class whitening). None: the covariance of all samples (PCA whitening).
        shrinkage: Regularisation, positive.

    Raises:
        ValueError: If no direction has any variance, for example because no class has two different samples.

    Reference:
        Mikolajczyk & Matas, ICCV 2007 (within-class); Jegou & Chum, ECCV 2012 (PCA).
    """
    points = normalise(features).astype(np.float64)
    mean = points.mean(0)
    centre = mean if labels is None else class_means(points, labels)
    return Whitening(mean, inverse_root(points - centre, shrinkage))


def inverse_root(differences: Floats, shrinkage: float = SHRINKAGE) -> Floats:
    """Return a matrix W (F, F) with W W' equal to the inverse of a covariance matrix with shrinkage.

    W is unique up to a rotation, which changes no distance. It is computed by a Cholesky factorisation, which takes a
    fraction of the time of an eigendecomposition.

    Args:
        differences: Features (N, F) minus their means, or minus those of their classes.
        shrinkage: Constant added to each variance, relative to the mean variance; positive.

    Raises:
        ValueError: If all differences are zero.
    """
    covariance = differences.T @ differences / len(differences)
    variance = np.trace(covariance) / len(covariance)  # mean over the principal directions
    if not variance > 0:
        raise ValueError("whitening needs features that vary; within classes, a class with two different samples")
    root: Floats = np.linalg.inv(np.linalg.cholesky(covariance + shrinkage * variance * np.eye(len(covariance)))).T
    return root


def normalise(features: Singles) -> Singles:
    """Return features (N, F) divided by their norms; rows of zeros stay zero."""
    norms = np.linalg.norm(features, axis=1, keepdims=True)
    unit: Singles = (features / np.maximum(norms, np.finfo(np.float32).tiny)).astype(np.float32)
    return unit


def class_means(points: Floats, labels: Ints) -> Floats:
    """Return for each sample the mean of its class, (N, F)."""
    _, place, counts = np.unique(labels, return_inverse=True, return_counts=True)
    order = np.argsort(place, kind="stable")
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    means: Floats = np.add.reduceat(points[order], starts) / counts[:, None]
    return means[place]
