"""Principal components, and standardisation of embeddings for all methods: centred, of unit scale, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmlcore.typing import Floats, Singles


def pca(embeddings: Any) -> Singles:
    """Return the two leading principal components in the units of the embeddings; zeros if there is no spread.

    Args:
        embeddings: Embeddings, shape (N, D).

    Returns:
        Positions in the plane, shape (N, 2), float32.

    Raises:
        ValueError: If the embeddings are invalid.

    Example:
        >>> from dmlcore import projection
        >>> projection.pca([[0.0, 3.0], [4.0, 3.0], [2.0, 4.0], [2.0, 2.0]]).round(3) + 0.0
        array([[-2.,  0.],
               [ 2.,  0.],
               [ 0.,  1.],
               [ 0., -1.]], dtype=float32)
    """
    points, spread = standardised(embeddings)
    plane: Singles = (principal(points) * spread).astype(np.float32)
    return plane


def place_pca(embeddings: Any, new: Any) -> Singles:
    """Project new embeddings on the plane of `pca(embeddings)`, exactly.

    Args:
        embeddings: Embeddings that determine the plane, shape (N, D).
        new: New embeddings, shape (M, D).

    Returns:
        Positions in the plane, shape (M, 2), float32.

    Raises:
        ValueError: If an argument is invalid.

    Example:
        >>> from dmlcore import projection
        >>> projection.place_pca([[0.0, 3.0], [4.0, 3.0], [2.0, 4.0], [2.0, 2.0]], [[3.0, 3.5]]).round(3)
        array([[1. , 0.5]], dtype=float32)
    """
    known, fresh = pair(embeddings, new)
    axes = _axes(standardised(known)[0])
    if axes is None:
        return np.zeros((len(fresh), 2), np.float32)
    middle = _middle(known)
    plane = np.zeros((len(fresh), 2), np.float32)
    plane[:, : len(axes)] = ((fresh - known[0]) - middle) @ axes.T
    return plane


def principal(points: Floats) -> Floats:
    """Return the two leading components (N, 2) of centred points; a missing component is zero."""
    plane = np.zeros((len(points), 2))
    axes = _axes(points)
    if axes is not None:
        plane[:, : len(axes)] = points @ axes.T
    return plane


def _axes(points: Floats) -> Floats | None:
    """Return the leading axes (at most 2, D) of centred points, with signs that do not depend on the library."""
    if not points.any():
        return None
    from sklearn.decomposition import PCA  # slow to import

    pca = PCA(min(2, *points.shape), random_state=0).fit(points)
    axes: Floats = pca.components_
    return axes


def _middle(known: Floats) -> Floats:
    """Return the mean of `known` relative to its first row."""
    middle: Floats = (known - known[0]).mean(axis=0)
    return middle


def standardised(embeddings: Any) -> tuple[Floats, float]:
    """Centre and divide by one number, about the root mean square, which is also returned.

    Distant or huge embeddings lose no digits.
    """
    points = checked("embeddings", embeddings)
    spread = 1.0
    points -= points[0].copy()  # exact zeros for equal points, unlike subtracting only the mean
    for size in (lambda x: np.abs(x).max(), lambda x: np.sqrt(np.mean(x**2))):  # the first division prevents overflow
        unit = float(size(points)) or 1.0
        points = points / unit
        points -= points.mean(axis=0)
        spread *= unit
    return points, spread


def pair(embeddings: Any, new: Any) -> tuple[Floats, Floats]:
    """Return embeddings (N, D) and new ones (M, D) as float64; raises ValueError."""
    known, fresh = checked("embeddings", embeddings), checked("new", new)
    if known.shape[1] != fresh.shape[1]:
        raise ValueError(f"new must have the {known.shape[1]} dimensions of embeddings, got {fresh.shape[1]}")
    return known, fresh


def checked(name: str, value: Any) -> Floats:
    """Return a new (N, D) array of finite float64; raises ValueError."""
    if hasattr(value, "detach"):  # a tensor, without importing torch
        value = value.detach().cpu().double().numpy()
    points = np.asarray(value)
    if points.dtype.kind not in "fiub" or points.ndim != 2 or 0 in points.shape:
        raise ValueError(
            f"{name} must be real numbers of shape (points, dimensions), got {points.dtype} {points.shape}"
        )
    if not np.isfinite(points).all():
        raise ValueError(f"{name} must be finite, but hold NaN or Inf")
    return points.astype(np.float64)
