"""Greedy k-centre selection and covering radii, which measure how well a few points represent a larger set."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike

from dmlcore.typing import Floats, Ints


def k_center(points: ArrayLike | torch.Tensor, existing: ArrayLike | torch.Tensor | None, k: int) -> Ints:
    """Choose k centres greedily. Each choice is the point farthest from all centres chosen so far.

    Ties go to the lowest index. Without existing centres the first choice is index 0. The resulting covering radius is
    at most twice the smallest that any choice of k centres can reach.

    Args:
        points: Candidate points, shape (N, D).
        existing: Centres that are already chosen, shape (M, D), or None.
        k: Number of centres to choose, in addition to the existing ones.

    Returns:
        Indices of the chosen points in the order of choice, shape (k,), int64.

    Raises:
        ValueError: If k is not in 0..N, or a value or shape is invalid.

    Example:
        >>> from dmlcore import geometry
        >>> points = [[0.0, 0.0], [1.0, 0.0], [5.0, 0.0], [0.0, 3.0]]
        >>> geometry.k_center(points, None, 3)
        array([0, 2, 3])
        >>> geometry.k_center(points, [[5.0, 0.0]], 2)
        array([3, 1])

    Reference:
        Gonzalez 1985; Sener & Savarese 2018.
    """
    points = _points("points", points)
    if isinstance(k, bool) or not 0 <= k <= len(points):
        raise ValueError(f"k must be in 0..{len(points)}, the number of points, got {k}")
    uncovered = np.full(len(points), np.inf)
    others = points[:0] if existing is None or np.size(existing) == 0 else _points("existing", existing)
    if len(others):
        if others.shape[1] != points.shape[1]:
            raise ValueError(f"existing must have {points.shape[1]} columns like points, got {others.shape[1]}")
        uncovered = _distances(points, others).min(axis=1)
    picks = np.empty(k, dtype=np.int64)
    for i in range(k):
        picks[i] = pick = int(uncovered.argmax())
        uncovered = np.minimum(uncovered, _distances(points, points[pick : pick + 1])[:, 0])
        # exclude the chosen points, but not their duplicates, which also have distance 0
        uncovered[picks[: i + 1]] = -1.0
    return picks


def covering_radius(points: ArrayLike | torch.Tensor, centers: ArrayLike | torch.Tensor) -> float:
    """Return the largest distance from any of the points (N, D) to its nearest centre (M, D).

    Raises:
        ValueError: If a set is empty or not finite.
    """
    points, centers = _points("points", points), _points("centers", centers)
    if not len(points) or not len(centers):
        raise ValueError("points and centers must not be empty")
    return float(_distances(points, centers).min(axis=1).max())


def average_covering_radius(points: ArrayLike | torch.Tensor, labels: ArrayLike | torch.Tensor) -> float:
    """Return the greedy covering radius, averaged over k = 1..n for each class of n points, then over classes.

    The result measures the spread of the classes.

    Raises:
        ValueError: If the labels do not have one entry per point, or there are no points.
    """
    points, labels = _points("points", points), np.asarray(labels)
    if labels.shape != (len(points),) or not len(labels):
        raise ValueError(f"labels must have shape ({len(points)},), one per point, got {labels.shape}")
    classes, sizes = np.unique(labels, return_counts=True)
    averages = np.empty(len(classes))
    for size in np.unique(sizes):
        same = np.flatnonzero(sizes == size)
        # process classes in groups whose distance matrices take at most 8 MiB together
        for chosen in np.array_split(same, max(1, len(same) * int(size) ** 2 >> 20)):
            tables = [_distances(members, members) for c in classes[chosen] for members in (points[labels == c],)]
            averages[chosen] = _curves(np.stack(tables)).mean(axis=1)
    return float(averages.mean())


def _curves(distances: Floats) -> Floats:
    """Compute the greedy covering radii (C, n) of C sets of n points from their distance matrices (C, n, n)."""
    sets, curve = np.arange(len(distances)), np.empty((len(distances), distances.shape[1]))
    pick = distances.max(axis=2).argmin(axis=1)
    uncovered = distances[sets, pick].copy()
    for k in range(curve.shape[1]):
        # Once every uncovered point has distance 0 all later radii are 0, so chosen points need not be masked.
        pick = uncovered.argmax(axis=1)
        curve[:, k] = uncovered[sets, pick]
        uncovered = np.minimum(uncovered, distances[sets, pick])
    return curve


def _distances(x: Floats, y: Floats) -> Floats:
    """Compute the distances (N, M) between the rows of x and y, in blocks of at most 64 MiB."""
    rows = max(1, (1 << 23) // max(1, y.size))
    blocks = [np.linalg.norm(x[i : i + rows, None] - y[None], axis=-1) for i in range(0, len(x), rows)]
    return np.concatenate(blocks) if blocks else np.empty((0, len(y)))


def _points(name: str, value: ArrayLike | torch.Tensor) -> Floats:
    array = value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)
    array = array.astype(np.float64)
    if array.ndim != 2 or not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite numbers of shape (N, D), got shape {array.shape}")
    return array
