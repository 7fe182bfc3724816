"""Easy, semi-hard and hard: where the scanning point of a triplet stands, by the loss that is used."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from dmlcore.geometry.field_table import field_table
from dmlcore.geometry.forces import EdgeEnergy, Probe

RAY = torch.linspace(0.02, 6.0, 300, dtype=torch.float64)  # distances from the anchor at which names are looked for


@dataclass(frozen=True)
class Hardness:
    """The circle about the anchor that parts hard from semi-hard, and a place (x, y) in each region that exists.

    radius is None for a scanned anchor, which Fig. 2.5 does not treat.
    """

    radius: float | None
    names: tuple[tuple[str, tuple[float, float]], ...]


def hardness(loss: EdgeEnergy, a: Tensor, p: Tensor, n: Tensor, probe: Probe) -> Hardness:
    """Regions of Karaman 2021, Fig. 2.5, in the plane: a, p, n (2,) float64.

    A scanned negative is hard nearer to the anchor than the positive, semi-hard beyond while the loss is active, easy
    without loss; a scanned positive is hard beyond d_an, semi-hard nearer while active, easy without loss. Raises
    ValueError for an unknown probe.
    """
    if probe == "anchor":
        return Hardness(None, ())
    other = p if probe == "negative" else n
    radius = float((a - other).norm())
    x, y = (other - a).tolist()
    away = math.atan2(y, x) + 0.75 * math.pi  # a direction that leaves the points free
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
