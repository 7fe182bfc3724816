"""Embeddings on a plane: t-SNE and PCA."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE

Plane = NDArray[np.float32]

FEWEST = 5  # points that a t-SNE map needs
SHORTEST = 250  # iterations: scikit-learn's first phase alone


def fitting_perplexity(points: int, perplexity: float = 30) -> float:
    """The perplexity that `tsne` takes for so many points: at most (points - 1) / 3."""
    return min(perplexity, (points - 1) / 3)


def tsne(
    embeddings: ArrayLike | torch.Tensor, *, perplexity: float = 30, iterations: int = 1000, seed: int = 0
) -> Plane:
    """Return a t-SNE map, (N, D) -> (N, 2) float32, started from PCA and a function of its arguments only.

    `perplexity` (above 1) is lowered to (N - 1) / 3 for few points; `iterations` is at least 250; `seed` 0..2^32 - 1.
    The map does not depend on the offset or the scale of the embeddings. Raises ValueError naming the argument, also
    for fewer than 5 points and for embeddings that are all equal. Source: van der Maaten and Hinton (2008).
    """
    points, _ = _standardised(embeddings)
    if len(points) < FEWEST:
        raise ValueError(f"embeddings must hold at least {FEWEST} points for a t-SNE map, got {len(points)}")
    if not points.any():
        raise ValueError("embeddings are all equal (collapsed): there is nothing for t-SNE to spread out")
    if not 1 < perplexity < np.inf:
        raise ValueError(f"perplexity must be finite and above 1, got {perplexity}")
    if iterations < SHORTEST:
        raise ValueError(f"iterations must be at least {SHORTEST}, got {iterations}")
    start = _principal(points, seed)
    model = TSNE(
        perplexity=fitting_perplexity(len(points), perplexity),
        max_iter=iterations,
        init=start / start[:, 0].std() * 1e-4,  # the size that scikit-learn gives its own PCA start
        learning_rate="auto",
        random_state=seed,
    )
    plane: Plane = model.fit_transform(points).astype(np.float32)
    return plane


def pca(embeddings: ArrayLike | torch.Tensor) -> Plane:
    """Return the two leading principal components in the units of the embeddings, (N, D) -> (N, 2) float32.

    Zeros where the embeddings have no spread. Raises ValueError naming the argument.
    """
    points, spread = _standardised(embeddings)
    return _principal(points, seed=0) * np.float32(spread)


def _principal(points: NDArray[np.float64], seed: int) -> Plane:
    components = min(2, *points.shape)
    plane = np.zeros((len(points), 2), np.float32)
    if points.any():
        plane[:, :components] = PCA(components, random_state=seed).fit_transform(points)
    return plane


def _standardised(embeddings: ArrayLike | torch.Tensor) -> tuple[NDArray[np.float64], float]:
    """Centre and divide by one number, about the root mean square, so that far-off or huge embeddings lose no digits;
    return that number too."""
    if isinstance(embeddings, torch.Tensor):
        embeddings = embeddings.detach().cpu().double().numpy()
    points = np.asarray(embeddings)
    if points.dtype.kind not in "fiub" or points.ndim != 2 or 0 in points.shape:
        raise ValueError(
            f"embeddings must be real numbers of shape (points, dimensions), got {points.dtype} {points.shape}"
        )
    if not np.isfinite(points).all():
        raise ValueError("embeddings must be finite, but hold NaN or Inf")
    points = points.astype(np.float64)
    spread = 1.0
    points -= points[0]  # exact zeros for equal points, which subtracting the mean alone would not give
    for size in (lambda x: np.abs(x).max(), lambda x: np.sqrt(np.mean(x**2))):  # the first rules out overflow
        unit = float(size(points)) or 1.0
        points = points / unit
        points -= points.mean(axis=0)
        spread *= unit
    return points, spread
