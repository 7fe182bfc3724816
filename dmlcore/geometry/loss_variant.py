"""Variants of a triplet loss for comparisons: with or without clamp, in one order or both, times a factor."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor

from dmlcore.geometry.field_table import FieldTable, field_table, grid
from dmlcore.geometry.forces import EdgeEnergy, Probe, TripletEnergy


class PointEdgeEnergy(TripletEnergy, EdgeEnergy, Protocol):
    """Protocol of a loss that accepts both points and edges."""


@dataclass
class Variant:
    """factor * loss + shift, optionally without its clamp and summed over the orders (a, p, n) and (p, a, n).

    A variant is a `TripletEnergy`, so `forces` accepts it. Each order is clamped separately, as in a batch. The shift
    is a constant of the energy and moves no boundary; the factor is positive.
    """

    loss: PointEdgeEnergy
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
        """Return the energy before any clamp at points of shapes (..., D), as (...)."""
        energy = self.loss.raw(anchor, positive, negative)
        if self.both_orders:
            energy = energy + self.loss.raw(positive, anchor, negative)
        return self.factor * energy + self.shift

    def clamped(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Return the compared energy at points of shapes (..., D): clamped, or raw if `clamp` is False."""
        if not self.clamp:
            return self.raw(anchor, positive, negative)
        energy = self.loss.clamped(anchor, positive, negative)
        if self.both_orders:
            energy = energy + self.loss.clamped(positive, anchor, negative)
        return self.factor * energy + self.shift

    def table(
        self, a: Tensor, p: Tensor, n: Tensor, *, probe: Probe = "negative", at: Tensor | None = None
    ) -> FieldTable:
        """Evaluate `field_table` of the compared energy; raw, energy and force include the factor, `orders` do not."""
        reading = {"clamp": self.clamp, "both_orders": self.both_orders}
        return field_table(self.loss, a, p, n, probe=probe, at=at, factor=self.factor, shift=self.shift, **reading)


def scan_variant(
    variant: Variant, a: Tensor, p: Tensor, n: Tensor, *, probe: Probe = "negative", x: Tensor, y: Tensor
) -> FieldTable:
    """Evaluate the variant with its probe on the grid of x (W,) and y (H,)."""
    return variant.table(a, p, n, probe=probe, at=grid(x, y))
