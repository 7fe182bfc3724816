"""Regions in which a negative or positive is easy, semi-hard or hard, according to a triplet loss."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from dmlcore.geometry.field_table import field_table
from dmlcore.geometry.forces import EdgeEnergy, Probe

# distances from the anchor at which positions for the labels are tested
RAY = torch.linspace(0.02, 6.0, 300, dtype=torch.float64)


@dataclass(frozen=True)
class Hardness:
    """Radius of the circle around the anchor between hard and semi-hard, and a label position (x, y) for each region.

    If the anchor is the probe, there are no regions and `radius` is None.
    """

    radius: float | None
    names: tuple[tuple[str, tuple[float, float]], ...]


def hardness(loss: EdgeEnergy, a: Tensor, p: Tensor, n: Tensor, probe: Probe) -> Hardness:
    """Compute the regions in which the moving point (`probe`) is easy, semi-hard or hard, as in Karaman 2021, Fig. 2.5.

    A negative is hard if it is closer to the anchor than the positive, semi-hard if it is farther and the loss is
    active, and easy if the loss is zero. A positive is hard if it is farther from the anchor than the negative,
    semi-hard if it is closer and the loss is active, and easy if the loss is zero. An anchor has no such regions.

    Args:
        loss: Triplet loss as a function of edge lengths and squared norms.
        a: Anchor, shape (2,), float64.
        p: Positive, shape (2,), float64.
        n: Negative, shape (2,), float64.
        probe: Point whose position is classified.

    Raises:
        ValueError: If the probe is unknown.
    """
    if probe == "anchor":
        return Hardness(None, ())
    other = p if probe == "negative" else n
    radius = float((a - other).norm())
    x, y = (other - a).tolist()
    away = math.atan2(y, x) + 0.75 * math.pi  # direction away from the other point, so that no label covers it
    ray = torch.tensor([math.cos(away), math.sin(away)], dtype=torch.float64)
    active = field_table(loss, a, p, n, probe=probe, at=a + RAY[:, None] * ray).active
    near = radius > RAY
    regions = {
        "negative": {"hard": near & active, "semi-hard": ~near & active, "easy": ~near & ~active},
        "positive": {"easy": near & ~active, "semi-hard": near & active, "hard": ~near & active},
    }[probe]
    names = []
    for name, inside in regions.items():
        if bool(inside.any()):
            low, high = float(RAY[inside].min()), float(RAY[inside].max())
            u, v = (a + (low + min((high - low) / 2, 0.3)) * ray).tolist()
            names.append((name, (u, v)))
    return Hardness(radius, tuple(names))
