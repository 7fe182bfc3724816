"""Overlap of classes, each represented by the convex hull of its active prototypes.

Import this module directly, not through the package: it loads scipy, which training runs do not need.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls
from scipy.spatial import ConvexHull, QhullError

from dmlcore.typing import Bools, Floats, Ints

Corners = list[list[float]]  # vertices of a polygon

MEETING = 1e-9  # hulls count as intersecting if their distance is below this fraction of their extent


@dataclass(frozen=True, eq=False)
class Overlaps:
    """Measures of the overlap between classes, for each pair of classes."""

    classes: Ints  # (C,)
    tau: float  # a prototype is active in a class if its share there exceeds this threshold
    active: Bools  # (C, m)
    # Tables (C, C) by measure, NaN on the diagonal:
    # histogram_intersection: sum over prototypes of the smaller share; for any dimension, without a threshold
    # active_jaccard: number of prototypes active in both classes divided by the number active in either
    # hull_separation: distance between the hulls, the largest margin that separates them; 0 only if they intersect
    # hull_iou: intersection over union of the hulls, only if prototypes are 2-D
    # membership_rate: [a, b] is the fraction of embeddings of class a in the hull of class b, only with embeddings
    pairs: Mapping[str, Floats]

    def mean(self, measure: str) -> float | None:
        """Return the mean of a measure over pairs of different classes; None if it was not computed."""
        table = self.pairs.get(measure)
        return None if table is None else float(table[~np.isnan(table)].mean())


def class_histograms(histograms: ArrayLike, labels: ArrayLike) -> tuple[Ints, Floats]:
    """Return the distinct classes (C,) in ascending order and the mean histogram of each class, shape (C, m).

    Args:
        histograms: Histogram of each sample, shape (N, m).
        labels: Class of each sample, shape (N,).

    Raises:
        ValueError: If a value or shape is invalid.
    """
    h, y = _points("histograms", histograms), np.asarray(labels)
    if y.shape != (len(h),):
        raise ValueError(f"labels must have shape ({len(h)},), one per histogram, got {y.shape}")
    classes = np.unique(y)
    return classes.astype(np.int64), np.stack([h[y == c].mean(0) for c in classes])


def active(shares: ArrayLike, tau: float | None = None) -> Bools:
    """Return a boolean mask (..., m) of the prototypes that are active in each class.

    A prototype is active if its share in the class exceeds `tau`.

    Args:
        shares: Mean histogram of each class, shape (..., m).
        tau: Threshold of the share; 1 / (10 m) if None.

    Raises:
        ValueError: If `tau` is negative or not finite.
    """
    h = np.asarray(shares, dtype=np.float64)
    threshold = 1 / (10 * h.shape[-1]) if tau is None else tau
    if not (np.isfinite(threshold) and threshold >= 0):
        raise ValueError(f"tau must be a share from 0 on, got {tau}")
    flags: Bools = h > threshold
    return flags


def hull(points: ArrayLike) -> Floats:
    """Return the vertices (k, 2) of the convex hull of points (n, 2), counterclockwise.

    Collinear points give their two end points, and coincident points give one.
    """
    x = np.asarray(points, dtype=np.float64).reshape(-1, 2)
    if len(x) > 2:
        try:
            return cast(Floats, x[ConvexHull(x).vertices])
        except QhullError:  # collinear or coincident points
            pass
    order = np.lexsort(x.T[::-1])
    ends = x[order[[0, -1]]] if len(x) else x
    return cast(Floats, np.unique(ends, axis=0))


def area(polygon: ArrayLike) -> float:
    """Return the area of a polygon with vertices (k, 2) in counterclockwise order; 0 for k < 3."""
    x = np.asarray(polygon, dtype=np.float64).reshape(-1, 2)
    if len(x) < 3:
        return 0.0
    x = x - x[0]  # Move the first vertex to the origin, because far from it the products below would cancel.
    y = np.roll(x, -1, axis=0)
    return float((x[:, 0] * y[:, 1] - x[:, 1] * y[:, 0]).sum() / 2)


def clip(corners: Corners, side: Sequence[float]) -> Corners:
    """Return the part of a convex polygon with `side` >= 0, where `side` is an affine function at each corner."""
    kept: Corners = []
    for p, q, s, t in zip(corners, corners[1:] + corners[:1], side, [*side[1:], *side[:1]], strict=True):
        if s >= 0:
            kept.append(p)
        if s * t < 0:
            along = s / (s - t)
            kept.append([p[0] + (q[0] - p[0]) * along, p[1] + (q[1] - p[1]) * along])
    return kept


def intersection(first: ArrayLike, second: ArrayLike) -> Floats:
    """Return the vertices (k, 2) of the intersection of two convex polygons.

    Both polygons need at least three vertices in counterclockwise order.
    """
    # For a few vertices plain floats are ten times faster than arrays.
    left: Corners = np.asarray(first, dtype=np.float64).reshape(-1, 2).tolist()
    edges: Corners = np.asarray(second, dtype=np.float64).reshape(-1, 2).tolist()
    for (ax, ay), (bx, by) in zip(edges, edges[1:] + edges[:1], strict=True):
        left = clip(left, [(bx - ax) * (y - ay) - (by - ay) * (x - ax) for x, y in left])
    return np.array(left).reshape(-1, 2)


def iou(one: Floats, two: Floats) -> float:
    """Return the intersection over union of convex polygons with counterclockwise vertices; 0 if either has no area."""
    if min(len(one), len(two)) < 3:
        return 0.0
    shared, areas = max(0.0, area(intersection(one, two))), area(one) + area(two)
    return shared / (areas - shared) if areas > shared else 0.0


def histogram_intersections(shares: Floats) -> Floats:
    """Return the intersection sum_i min(h_i, g_i) of all pairs of histograms (C, m): 1 if equal, 0 if disjoint."""
    shared: Floats = np.minimum(shares[:, None], shares).sum(-1)
    return shared


def hull_separation(first: ArrayLike, second: ArrayLike) -> float:
    """Return the distance between the convex hulls of point sets (n, D) and (k, D).

    This is the largest margin by which a hyperplane can separate the sets. It is 0 if and only if the hulls intersect,
    and inf if a set is empty. It equals the distance from the origin to the convex hull of all pairwise differences,
    which is found by non-negative least squares.

    Reference:
        Lawson & Hanson 1974, ch. 23 (least distance programming).
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if not len(a) or not len(b):
        return float("inf")
    if a.shape[1] == 2:
        a, b = hull(a), hull(b)  # hull vertices suffice and give fewer differences
    differences = (a[:, None] - b[None]).reshape(-1, a.shape[1])
    extent = float(np.linalg.norm(differences, axis=1).max())
    if extent == 0 or not differences.any(axis=1).all():  # a common point
        return 0.0
    # The minimiser u >= 0 of |D^T u|^2 + (sum u - 1)^2, divided by its sum, holds the weights of the hull point nearest
    # to the origin.
    system = np.vstack([differences.T / extent, np.ones(len(differences))])
    weights, _ = nnls(system, np.append(np.zeros(a.shape[1]), 1.0))
    distance = float(np.linalg.norm(weights @ differences) / weights.sum())
    return distance if distance > MEETING * extent else 0.0


def members(embeddings: ArrayLike, corners: ArrayLike) -> Bools:
    """Return a boolean mask (N,) of the embeddings (N, D) in the convex hull of points (k, D), border included."""
    x, v = np.asarray(embeddings, dtype=np.float64), np.asarray(corners, dtype=np.float64)
    if not len(v):
        return np.zeros(len(x), dtype=bool)
    slack = MEETING * float(np.ptp(v, axis=0).max())
    # test the bounding box of the hull first
    inside: Bools = ((x >= v.min(0) - slack) & (x <= v.max(0) + slack)).all(1)
    around = hull(v) if v.shape[1] == 2 else v
    if v.shape[1] == 2 and len(around) > 2:
        return inside & _within(x, around, slack)
    for i in np.flatnonzero(inside):
        inside[i] = hull_separation(x[i : i + 1], around) == 0
    return inside


def _within(x: Floats, polygon: Floats, slack: float) -> Bools:
    """Return a boolean mask (N,) of the points (N, 2) inside a convex polygon or at most `slack` outside an edge."""
    edges = np.roll(polygon, -1, axis=0) - polygon
    offsets = x[:, None] - polygon
    sides = edges[:, 0] * offsets[..., 1] - edges[:, 1] * offsets[..., 0]
    flags: Bools = (sides >= -slack * np.linalg.norm(edges, axis=1)).all(1)
    return flags


def overlaps(
    prototypes: ArrayLike,
    histograms: ArrayLike,
    labels: ArrayLike,
    embeddings: ArrayLike | None = None,
    tau: float | None = None,
) -> Overlaps:
    """Compute all measures of overlap between classes.

    In high dimensions two hulls intersect as soon as they share one prototype, but histogram_intersection and
    active_jaccard remain informative.

    Args:
        prototypes: Prototypes, shape (m, D).
        histograms: Histograms of the samples over the prototypes, shape (N, m).
        labels: Class of each sample, shape (N,).
        embeddings: Embeddings of the samples, shape (N, D), or None to leave out `membership_rate`.
        tau: Share above which a prototype is active in a class; 1 / (10 m) if None.

    Raises:
        ValueError: If an argument is invalid or there are fewer than two classes.

    Reference:
        Gurbuz 2022, ch. 4.
    """
    # Check that the shapes of all arguments agree.
    v = _points("prototypes", prototypes)
    classes, shares = class_histograms(histograms, labels)
    if shares.shape[1] != len(v):
        raise ValueError(f"histograms must have {len(v)} columns, one per prototype, got {shares.shape[1]}")
    if len(classes) < 2:
        raise ValueError("labels must hold at least two classes, or nothing can overlap")
    x, y = None if embeddings is None else _points("embeddings", embeddings), np.asarray(labels)
    if x is not None and x.shape != (len(y), v.shape[1]):
        raise ValueError(f"embeddings must have shape ({len(y)}, {v.shape[1]}), got {x.shape}")
    # A class is represented by its active prototypes. In 2-D the vertices of their convex hull suffice.
    flags = active(shares, tau)
    corners = [v[f] for f in flags]
    if v.shape[1] == 2:
        corners = [hull(c) for c in corners]
    either = (flags[:, None] | flags).sum(-1)
    pairs = {
        "histogram_intersection": histogram_intersections(shares),
        "active_jaccard": (flags[:, None] & flags).sum(-1) / np.maximum(1, either),
        "hull_separation": np.zeros(either.shape),
    }
    if v.shape[1] == 2:
        pairs["hull_iou"] = np.zeros(either.shape)
    for a, b in itertools.combinations(range(len(classes)), 2):
        if v.shape[1] == 2:
            pairs["hull_iou"][[a, b], [b, a]] = iou(corners[a], corners[b])
        if not (flags[a] & flags[b]).any():  # hulls with a common vertex intersect, so the solver is not needed
            pairs["hull_separation"][[a, b], [b, a]] = hull_separation(corners[a], corners[b])
    if x is not None:
        pairs["membership_rate"] = np.zeros(either.shape)
        for a, b in itertools.permutations(range(len(classes)), 2):
            pairs["membership_rate"][a, b] = members(x[y == classes[a]], corners[b]).mean()
    for table in pairs.values():
        np.fill_diagonal(table, np.nan)
    return Overlaps(classes=classes, tau=1 / (10 * len(v)) if tau is None else float(tau), active=flags, pairs=pairs)


def _points(name: str, value: ArrayLike) -> Floats:
    array = np.asarray(value, dtype=np.float64)
    if array.ndim != 2 or not array.size or not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite numbers of shape (N, D), N > 0, got shape {array.shape}")
    return array
