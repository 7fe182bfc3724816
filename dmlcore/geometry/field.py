"""Forces on the points of a triplet, and the field a probe point feels as it scans the plane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor

Probe = Literal["anchor", "positive", "negative"]


class TripletEnergy(Protocol):
    """A triplet loss: energies of triplets of points, shapes (..., D) x3 -> (...)."""

    m2: float

    def raw(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Energy with its margin, before the clamp."""
        ...

    def clamped(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Energy after the clamp to [0, m2]."""
        ...


def forces(loss: TripletEnergy, a: Tensor, p: Tensor, n: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Forces on anchor, positive, negative: minus the gradient of the clamped loss.

    Shapes (..., D) x3, broadcast together; each force has the shape of its own point (summed over the broadcast).
    Outside 0 < raw < m2 all three are zero. Raises TypeError or ValueError naming the point that is no finite
    floating-point tensor. Source: Karaman 2021, Sec. 3.1.
    """
    for name, x in (("anchor", a), ("positive", p), ("negative", n)):
        if not isinstance(x, Tensor) or not x.is_floating_point():
            kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
            raise TypeError(f"{name} must be a floating-point tensor, got {kind}")
    with torch.enable_grad():
        points = [x.detach().requires_grad_() for x in (a, p, n)]
        energy = loss.clamped(*points).sum()
        gradients = torch.autograd.grad(energy, points, allow_unused=True, materialize_grads=True)
    force_a, force_p, force_n = (-g for g in gradients)
    return force_a, force_p, force_n


@dataclass(frozen=True)
class Field:
    """A scan of the plane by one point of the triplet, the other two fixed: rows are y, columns are x."""

    raw: Tensor  # (H, W) energy before the clamp
    energy: Tensor  # (H, W) clamped energy
    force: Tensor  # (H, W, 2) force on the probe
    active: Tensor  # (H, W) bool: 0 < raw < m2, the in-loss-miner region


def scan(
    loss: TripletEnergy, a: Tensor, p: Tensor, n: Tensor, *, probe: Probe = "negative", x: Tensor, y: Tensor
) -> Field:
    """Move the probe over the grid x (W,) times y (H,) while the other two points of the plane, (2,), stay.

    One forward and one backward pass for the whole grid. Raises ValueError for an unknown probe.
    """
    if probe not in ("anchor", "positive", "negative"):
        raise ValueError(f"probe must be anchor, positive or negative, got {probe!r}")
    with torch.enable_grad():
        grid = torch.stack(torch.meshgrid(x, y, indexing="xy"), dim=-1).requires_grad_()
        fixed = {"anchor": a, "positive": p, "negative": n}
        raw = loss.raw(*(grid if name == probe else point.detach() for name, point in fixed.items())).expand(
            grid.shape[:-1]
        )
        active = (raw > 0) & (raw < loss.m2)
        (gradient,) = torch.autograd.grad(raw, grid, active.to(raw.dtype), allow_unused=True, materialize_grads=True)
    raw = raw.detach()
    return Field(raw, raw.clamp(0.0, loss.m2), -gradient, active)
