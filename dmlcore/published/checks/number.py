"""Outcomes of the checks of errata: stated and computed numbers, and decisions between printed and true values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Number:
    """A number that an erratum states, with its recomputed value.

    Attributes:
        what: Description of the number.
        stated: The stated number as decimal text, with the digits of the source.
        value: The computed value.
    """

    what: str
    stated: str
    value: float

    @property
    def agrees(self) -> bool:
        """True if the recomputed value differs from the stated number by at most half a unit of its last digit."""
        mantissa, _, power = self.stated.partition("e")
        digits = len(mantissa.partition(".")[2])
        unit = 10.0 ** (int(power or 0) - digits)
        return abs(self.value - float(self.stated)) <= unit * (0.5 + 1e-6)


@dataclass(frozen=True)
class Decision:
    """A quantity as printed, as corrected, and as computed by a referee that uses neither formula.

    The printed or corrected value holds if it deviates from the referee's value by at most `tolerance`, relative to the
    largest of 1 and the two magnitudes.

    Attributes:
        what: Description of the quantity.
        printed: Printed value; None if nothing is printed, infinite or NaN if it cannot be evaluated.
        true: Corrected value.
        referee: The referee's value.
        by: Method of the referee, for example "automatic differentiation".
        bound: True if both the printed and the corrected value are upper bounds of the referee's value.
        tolerance: Relative tolerance.
    """

    what: str
    printed: float | None
    true: float
    referee: float
    by: str
    bound: bool = False
    tolerance: float = 1e-9

    def _holds(self, claimed: float | None) -> bool:
        if claimed is None or not math.isfinite(claimed):
            return False
        short = self.referee - claimed
        return (short if self.bound else abs(short)) <= self.tolerance * max(1.0, abs(claimed), abs(self.referee))

    @property
    def printed_holds(self) -> bool:
        """True if the printed value agrees with the referee's."""
        return self._holds(self.printed)

    @property
    def true_holds(self) -> bool:
        """True if the corrected value agrees with the referee's."""
        return self._holds(self.true)

    @property
    def decides(self) -> bool:
        """True if the corrected value agrees with the referee's and the printed one does not."""
        return self.true_holds and not self.printed_holds


Outcome = Number | Decision
Check = Callable[[], Iterable[Outcome]]
