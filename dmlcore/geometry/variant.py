"""A triplet loss as a comparison reads it: clamped or not, in one order or summed over both, times a factor."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from dmlcore.geometry.forces import Field, Probe, TripletEnergy


@dataclass
class Variant:
    """factor * loss + shift, optionally without its clamp and summed over the orders (a, p, n) and (p, a, n).

    Itself a `TripletEnergy`, so that `forces` takes it. Each order is clamped by itself, as in a batch; the shift is a
    constant of the energy and moves no boundary. factor > 0.
    """

    loss: TripletEnergy
    clamp: bool = True
    both_orders: bool = False
    factor: float = 1.0
    shift: float = 0.0
    m2: float = field(init=False)  # largest value of the energy; inf without a clamp

    def __post_init__(self) -> None:
        """Raise ValueError for a factor that is not positive and finite."""
        if not 0 < self.factor < math.inf:
            raise ValueError(f"factor must be positive and finite, got {self.factor}")
        orders = 2 if self.both_orders else 1
        self.m2 = self.factor * orders * self.loss.m2 + self.shift if self.clamp else math.inf

    def raw(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Energy before any clamp; points (..., D) x3 -> (...)."""
        return self.factor * _sum(self.orders(anchor, positive, negative)) + self.shift

    def clamped(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """The energy compared: after the clamp, or before it where `clamp` is off; points (..., D) x3 -> (...)."""
        return self.energy(self.orders(anchor, positive, negative))

    def active(self, orders: list[Tensor]) -> Tensor:
        """Where some order has a gradient: everywhere without a clamp."""
        if not self.clamp:
            return torch.ones_like(orders[0], dtype=torch.bool)
        return torch.stack([(raw > 0) & (raw < self.loss.m2) for raw in orders]).any(0)

    def orders(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> list[Tensor]:
        """Raw energy of the loss itself in each order: one or two tensors (...)."""
        energies = [self.loss.raw(anchor, positive, negative)]
        return [*energies, self.loss.raw(positive, anchor, negative)] if self.both_orders else energies

    def energy(self, orders: list[Tensor]) -> Tensor:
        """The energy compared, from the raw energies of `orders`."""
        if self.clamp:
            orders = [_clamped(raw, self.loss.m2) for raw in orders]
        return self.factor * _sum(orders) + self.shift


@dataclass(frozen=True)
class VariantDescription:
    """What a variant says about triplets."""

    raw: Tensor  # (...) before any clamp
    energy: Tensor  # (...) as compared
    active: Tensor  # (...) bool
    forces: tuple[Tensor, Tensor, Tensor]  # on anchor, positive, negative, (..., D)


def read(variant: Variant, a: Tensor, p: Tensor, n: Tensor) -> VariantDescription:
    """Energies and forces of triplets (..., D) x3 in one forward and one backward pass."""
    with torch.enable_grad():
        points = [x.detach().requires_grad_() for x in (a, p, n)]
        orders = variant.orders(*points)
        energy = variant.energy(orders)
        by_a, by_p, by_n = torch.autograd.grad(energy.sum(), points, allow_unused=True, materialize_grads=True)
    orders = [raw.detach() for raw in orders]
    raw = variant.factor * _sum(orders) + variant.shift
    return VariantDescription(raw, energy.detach(), variant.active(orders), (-by_a, -by_p, -by_n))


@dataclass(frozen=True)
class VariantField(Field):
    """A scan of a variant; raw, energy and force carry the factor."""

    orders: tuple[Tensor, ...]  # (H, W) each: raw energy of the loss itself, without factor


def scan_variant(
    variant: Variant, a: Tensor, p: Tensor, n: Tensor, *, probe: Probe = "negative", x: Tensor, y: Tensor
) -> VariantField:
    """Move the probe over the grid x (W,) times y (H,), the other two points of the plane, (2,), fixed.

    Like `scan`; energy and force are those the variant compares. Raises ValueError for an unknown probe.
    """
    if probe not in ("anchor", "positive", "negative"):
        raise ValueError(f"probe must be anchor, positive or negative, got {probe!r}")
    with torch.enable_grad():
        grid = torch.stack(torch.meshgrid(x, y, indexing="xy"), dim=-1).requires_grad_()
        points = {"anchor": a.detach(), "positive": p.detach(), "negative": n.detach()} | {probe: grid}
        orders = [raw.expand(grid.shape[:-1]) for raw in variant.orders(*points.values())]
        energy, active = variant.energy(orders), variant.active(orders)
        (gradient,) = torch.autograd.grad(energy.sum(), grid, allow_unused=True, materialize_grads=True)
    orders = [raw.detach() for raw in orders]
    raw = variant.factor * _sum(orders) + variant.shift
    return VariantField(raw, energy.detach(), -gradient, active, tuple(orders))


def _clamped(raw: Tensor, m2: float) -> Tensor:
    """min(m2, max(0, raw)) with a gradient only strictly inside, as `TripletLoss.clamped`."""
    return torch.where((raw > 0) & (raw < m2), raw, raw.detach().clamp(0.0, m2))


def _sum(orders: list[Tensor]) -> Tensor:
    return orders[0] if len(orders) == 1 else orders[0] + orders[1]
