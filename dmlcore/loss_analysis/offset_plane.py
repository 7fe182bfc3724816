"""Triplet losses on a plane of embeddings that does not pass through the origin."""

from __future__ import annotations

from torch import Tensor

from dmlcore.geometry import Triplet
from dmlcore.geometry.embedded_triplet import raise_triplet
from dmlcore.losses.engine.formula import TripletFormula
from dmlcore.losses.engine.triplet_loss import TripletLoss


class OffsetPlaneLoss(TripletLoss):
    """Energy of embeddings as a function of their coordinates in a plane at distance `height` from the origin.

    Coordinates are in units of `unit`, and so are forces, minus the derivative by a coordinate. With height 0 and unit
    1 the energy is that of the loss itself. Only a loss that depends on norms (`needs_origin`) depends on the height.
    """

    def __init__(self, formula: TripletFormula, height: float, unit: float = 1.0, **hyper: float | str) -> None:
        super().__init__(formula, "mean_valid", **hyper)
        self.height, self.unit = height, unit

    def _energy(self, t: Triplet) -> Tensor:
        return super()._energy(raise_triplet(t, self.height, self.unit))
