"""Principal component analysis, and the standardisation of embeddings that all projection methods share."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmlcore.typing import Floats, Singles


def pca(embeddings: Any) -> Singles:
    """Return the projection onto the two leading principal axes, not rescaled; zeros if all embeddings are equal.

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
    """Project new embeddings onto the plane of `pca(embeddings)`.

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
    """Project centred points (N, D) onto their two leading principal axes; return coordinates (N, 2).

    A coordinate without an axis is 0, for example if N or D is 1.
    """
    plane = np.zeros((len(points), 2))
    axes = _axes(points)
    if axes is not None:
        plane[:, : len(axes)] = points @ axes.T
    return plane


def _axes(points: Floats) -> Floats | None:
    """Return up to two principal axes (k, D) of centred points; None if all points are 0. Signs are deterministic."""
    if not points.any():
        return None
    from sklearn.decomposition import PCA  # slow to import

    pca = PCA(min(2, *points.shape), random_state=0).fit(points)
    axes: Floats = pca.components_
    return axes


def _middle(known: Floats) -> Floats:
    """Return mean(known) - known[0], (D,); subtracting known[0] first avoids rounding errors far from the origin."""
    middle: Floats = (known - known[0]).mean(axis=0)
    return middle


def standardised(embeddings: Any) -> tuple[Floats, float]:
    """Centre embeddings and divide all values by one scale factor; return the scaled embeddings and the factor.

    The factor is approximately the root mean square of the centred values. Centring and scaling in two steps preserves
    the precision of embeddings that are huge or far from the origin.
    """
    points = checked("embeddings", embeddings)
    spread = 1.0
    points -= points[0].copy()  # Equal points become exactly 0, which subtracting only the mean does not guarantee.
    # Dividing by the maximum first prevents overflow of the squares.
    for size in (lambda x: np.abs(x).max(), lambda x: np.sqrt(np.mean(x**2))):
        unit = float(size(points)) or 1.0
        points = points / unit
        points -= points.mean(axis=0)
        spread *= unit
    return points, spread


def pair(embeddings: Any, new: Any) -> tuple[Floats, Floats]:
    """Return float64 arrays `embeddings` (N, D) and `new` (M, D); raise ValueError if their dimensions D differ."""
    known, fresh = checked("embeddings", embeddings), checked("new", new)
    if known.shape[1] != fresh.shape[1]:
        raise ValueError(f"new must have the {known.shape[1]} dimensions of embeddings, got {fresh.shape[1]}")
    return known, fresh


def checked(name: str, value: Any) -> Floats:
    """Return a float64 copy (N, D) of `value`; raise ValueError with `name` unless it is real, finite and not empty."""
    if hasattr(value, "detach"):  # detects a tensor without importing torch
        value = value.detach().cpu().double().numpy()
    points = np.asarray(value)
    if points.dtype.kind not in "fiub" or points.ndim != 2 or 0 in points.shape:
        raise ValueError(
            f"{name} must be real numbers of shape (points, dimensions), got {points.dtype} {points.shape}"
        )
    if not np.isfinite(points).all():
        raise ValueError(f"{name} must be finite, but hold NaN or Inf")
    return points.astype(np.float64)
