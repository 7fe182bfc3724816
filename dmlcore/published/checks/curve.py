"""Counter-examples over one variable: the printed value, the true value, and a referee.

The referee is an independent computation of the same quantity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dmlcore.published.checks.number import Decision
from dmlcore.typing import Floats

POINTS, REFEREES = 61, 13  # number of points along the axis: for the printed and true values, and for the referee


@dataclass(frozen=True)
class Curve:
    """Counter-example of an erratum: a quantity as a function of one variable.

    Attributes:
        quantity: Name of the quantity.
        axis: Name of the variable.
        low: Lower end of the variable's range.
        high: Upper end of the variable's range.
        at: Value of the variable in the counter-example.
        sides: Function of the variable that returns the printed value, or None if nothing is printed, and the true
            value.
        referee: Independent computation of the quantity.
        by: Name of the referee's method.
        bound: True if the printed and the true value are upper bounds of the referee's value, as in `Decision`.
        whole: True if only integers are valid values of the variable.
        tolerance: Relative tolerance, as in `Decision`.
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
        """Compare the printed and the true value at x with the referee's value."""
        printed, true = self.sides(x)
        return Decision(
            f"{self.quantity}; {self.axis}: {x:g}", printed, true, self.referee(x), self.by, self.bound, self.tolerance
        )

    def places(self, count: int) -> Floats:
        """Return `count` evenly spaced numbers from `low` to `high`, rounded to distinct integers if `whole`."""
        spread = np.linspace(self.low, self.high, count)
        return np.unique(spread.round()) if self.whole else spread
