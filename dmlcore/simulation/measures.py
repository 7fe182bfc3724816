"""Measurements on the charges at one step: class radii, and the phase portrait of their triplets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dmlcore.geometry import Triplet
from dmlcore.geometry.boundary import Lines, level_lines
from dmlcore.losses import TripletLoss
from dmlcore.typing import Floats, Ints

BINS = 48  # per axis of the phase portrait
FIXED_COLUMNS = ("loss", "active", "pull", "push", "covering", "map_at_r", "largest_step")


def class_radii(positions: Floats, labels: Ints) -> tuple[Floats, Floats]:
    """Return class means (C, 2) and class radii (C,), the largest distance of a point from its class mean.

    Args:
        positions: Positions of the points, shape (N, 2).
        labels: Classes 0..C-1, shape (N,).
    """
    counts = np.bincount(labels)
    means = np.stack([np.bincount(labels, positions[:, axis]) for axis in (0, 1)], axis=1) / counts[:, None]
    radii = np.zeros(len(counts))
    np.maximum.at(radii, labels, np.linalg.norm(positions - means[labels], axis=1))
    return means, radii


@dataclass(frozen=True)
class DistanceHistogram:
    """Histogram of the distance pairs (d_an, d_ap) of valid triplets.

    `counts` has shape (BINS, BINS) over [0, reach]^2; rows are d_an, columns d_ap.
    """

    counts: Floats
    reach: float
    violated: float  # share of triplets with d_an < d_ap


def phase_portrait(positions: Floats, labels: Ints) -> DistanceHistogram:
    """Compute the exact phase portrait, the histogram of (d_an, d_ap) over all valid triplets.

    Given the anchor, positive and negative are independent, so the histogram is a sum over anchors of (histogram of
    d_an) x (histogram of d_ap), without enumerating triplets.

    Args:
        positions: Positions of the points, shape (N, 2).
        labels: Classes, shape (N,).
    """
    n = len(positions)
    distances = np.linalg.norm(positions[:, None] - positions[None], axis=-1)
    reach = _round_up(float(distances.max()))
    positive = (labels[:, None] == labels) & ~np.eye(n, dtype=bool)
    negative = labels[:, None] != labels
    cell = np.minimum((distances * (BINS / reach)).astype(np.int64), BINS - 1) + BINS * np.arange(n)[:, None]
    of_pairs, of_negatives = (
        np.bincount(cell[mask], minlength=n * BINS).reshape(n, BINS).astype(np.float64) for mask in (positive, negative)
    )
    # For each anchor, count the negatives closer than each positive; a positive with equal distance comes first.
    ordered = np.sort(np.where(negative, distances, np.inf), axis=1)
    violated = sum(
        int(np.searchsorted(ordered[anchor], distances[anchor, positive[anchor]]).sum()) for anchor in range(n)
    )
    total = int((positive.sum(axis=1) * negative.sum(axis=1)).sum())
    return DistanceHistogram(of_negatives.T @ of_pairs, reach, violated / max(total, 1))


def clamp_lines(loss: TripletLoss, reach: float, nodes: int = 97) -> tuple[Lines, Lines]:
    """Return the lines on which the loss before clamping is 0 and m2, for d_ap and d_an in [0, reach].

    Each list holds polylines (K, 2); the second list is empty if m2 is inf. Other quantities that the loss depends on
    (`depends_on`) are set to d_pn = d_an and |a| = |p| = |n| = 1.
    """
    axis = np.linspace(0.0, reach, nodes)
    d_an, d_ap = torch.meshgrid(*2 * [torch.from_numpy(axis)], indexing="ij")
    one = torch.ones((), dtype=torch.float64)
    edges = {"ap": d_ap, "an": d_an, "pn": d_an}
    raw = loss.raw_of(Triplet(edges.__getitem__, lambda _: one, loss.floor))
    values = np.nan_to_num(raw.expand(nodes, nodes).numpy(), posinf=1e9, neginf=-1e9)
    return level_lines(axis, axis, values, 0.0), level_lines(axis, axis, values, loss.m2)


def depends_on(loss: TripletLoss) -> frozenset[str]:
    """Return the quantities that a loss depends on: distances "ap", "an", "pn" and squared norms "a", "p", "n"."""
    asked: set[str] = set()

    def given(name: str) -> Tensor:
        asked.add(name)
        return torch.ones(())

    loss.raw_of(Triplet(given, given, loss.floor))
    return frozenset(asked)


def _round_up(x: float) -> float:
    """Round up to the next of a few axis limits from 0.05 to 32, so that the axes do not flicker."""
    steps = (0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0)
    # the tolerance lets the diameter 2 of the unit circle, computed with rounding errors, give the limit 2
    return next((s for s in steps if s >= x * (1 - 1e-6)), 32.0)
