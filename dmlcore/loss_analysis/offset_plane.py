"""Triplet loss of embeddings in a plane that does not pass through the origin."""

from __future__ import annotations

from torch import Tensor

from dmlcore.geometry import Triplet
from dmlcore.geometry.embedded_triplet import raise_triplet
from dmlcore.losses.engine.formula import TripletFormula
from dmlcore.losses.engine.triplet_loss import TripletLoss


class OffsetPlaneLoss(TripletLoss):
    """Triplet loss of points in a plane at distance `height` from the origin, as a function of plane coordinates.

    Coordinates and forces are measured in units of length `unit`; a force is minus the derivative with respect to a
    coordinate. With height 0 and unit 1 this is the original loss. Only losses that depend on norms (`needs_origin`)
    depend on the height.
    """

    def __init__(self, formula: TripletFormula, height: float, unit: float = 1.0, **hyper: float | str) -> None:
        super().__init__(formula, "mean_valid", **hyper)
        self.height, self.unit = height, unit

    def _energy(self, t: Triplet) -> Tensor:
        return super()._energy(raise_triplet(t, self.height, self.unit))
