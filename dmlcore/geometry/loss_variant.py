"""Variants of a triplet loss for comparisons: clamped or not, in one order or summed over both, scaled and shifted."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor

from dmlcore.geometry.field_table import FieldTable, field_table, grid
from dmlcore.geometry.forces import EdgeEnergy, Probe, TripletEnergy


class PointEdgeEnergy(TripletEnergy, EdgeEnergy, Protocol):
    """Protocol of a triplet loss that can be evaluated on points and on edge lengths."""


@dataclass
class Variant:
    """Triplet loss factor * loss + shift, optionally unclamped and summed over the orders (a, p, n) and (p, a, n).

    A variant is a `TripletEnergy`, so `forces` accepts it. Each order is clamped separately, as in a batch. Factor and
    shift act after the clamp, so they do not move the boundary of the active region. The factor is positive.
    """

    loss: PointEdgeEnergy
    clamp: bool = True
    both_orders: bool = False
    factor: float = 1.0
    shift: float = 0.0
    m2: float = field(init=False)  # largest value of the energy; inf if `clamp` is False

    def __post_init__(self) -> None:
        """Compute the largest energy `m2`. Raises ValueError unless the factor is positive and finite."""
        if not 0 < self.factor < math.inf:
            raise ValueError(f"factor must be positive and finite, got {self.factor}")
        orders = 2 if self.both_orders else 1
        self.m2 = self.factor * orders * self.loss.m2 + self.shift if self.clamp else math.inf

    def raw(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Return the energy of the variant without any clamp, shape (...), at points of shape (..., D)."""
        energy = self.loss.raw(anchor, positive, negative)
        if self.both_orders:
            energy = energy + self.loss.raw(positive, anchor, negative)
        return self.factor * energy + self.shift

    def clamped(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Return the energy, shape (...), at points of shape (..., D); it is clamped unless `clamp` is False."""
        if not self.clamp:
            return self.raw(anchor, positive, negative)
        energy = self.loss.clamped(anchor, positive, negative)
        if self.both_orders:
            energy = energy + self.loss.clamped(positive, anchor, negative)
        return self.factor * energy + self.shift

    def table(
        self, a: Tensor, p: Tensor, n: Tensor, *, probe: Probe = "negative", at: Tensor | None = None
    ) -> FieldTable:
        """Return the `field_table` of this variant.

        Its energies and forces are multiplied by `factor`; its `orders` (of both orders of anchor and positive) are
        not.
        """
        reading = {"clamp": self.clamp, "both_orders": self.both_orders}
        return field_table(self.loss, a, p, n, probe=probe, at=at, factor=self.factor, shift=self.shift, **reading)


def scan_variant(
    variant: Variant, a: Tensor, p: Tensor, n: Tensor, *, probe: Probe = "negative", x: Tensor, y: Tensor
) -> FieldTable:
    """Return the table (H, W) of a variant with the probe at each grid node with coordinates x (W,) and y (H,)."""
    return variant.table(a, p, n, probe=probe, at=grid(x, y))
