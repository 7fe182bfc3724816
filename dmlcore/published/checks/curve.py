"""Counter-examples that move along one number: both sides of an erratum as functions of it, and what decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dmlcore.published.checks.number import Decision
from dmlcore.typing import Floats

POINTS, REFEREES = 61, 13  # along the axis: of the two sides, and of what decides


@dataclass(frozen=True)
class Curve:
    """A quantity over an axis from low to high, at `at` in the counter-example; whole: the axis counts something.

    sides: the printed value, or None where nothing is printed, and the true one. bound, tolerance: as of `Decision`.
    """

    quantity: str
    axis: str
    low: float
    high: float
    at: float
    sides: Callable[[float], tuple[float | None, float]]
    referee: Callable[[float], float]
    by: str
    bound: bool = False
    whole: bool = False
    tolerance: float = 1e-6

    def decision(self, x: float) -> Decision:
        """Both sides at x, and what decides there."""
        printed, true = self.sides(x)
        return Decision(
            f"{self.quantity}; {self.axis}: {x:g}", printed, true, self.referee(x), self.by, self.bound, self.tolerance
        )

    def places(self, count: int) -> Floats:
        """About `count` places along the axis, its ends among them; whole numbers if it counts."""
        spread = np.linspace(self.low, self.high, count)
        return np.unique(spread.round()) if self.whole else spread
