"""What a check of an erratum finds: numbers as stated and as computed, and decisions between two sides."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Number:
    """A number of an erratum: what it is, as stated (decimal text, to its digits), and the value computed."""

    what: str
    stated: str
    value: float

    @property
    def agrees(self) -> bool:
        """Whether the value rounds to what is stated, half a unit of its last digit either way."""
        mantissa, _, power = self.stated.partition("e")
        digits = len(mantissa.partition(".")[2])
        unit = 10.0 ** (int(power or 0) - digits)
        return abs(self.value - float(self.stated)) <= unit * (0.5 + 1e-6)


@dataclass(frozen=True)
class Decision:
    """A quantity by the printed text, by its correction, and as something that knows neither finds it.

    printed: None where the text gives none, infinite or NaN where what is printed cannot be evaluated. bound: both
    sides claim not to be exceeded. A side holds within `tolerance`, relative to the greatest of the three above 1.
    """

    what: str
    printed: float | None
    true: float
    referee: float
    by: str  # what finds the referee's value, as "automatic differentiation"
    bound: bool = False
    tolerance: float = 1e-9

    def _holds(self, claimed: float | None) -> bool:
        if claimed is None or not math.isfinite(claimed):
            return False
        short = self.referee - claimed
        return (short if self.bound else abs(short)) <= self.tolerance * max(1.0, abs(claimed), abs(self.referee))

    @property
    def printed_holds(self) -> bool:
        """Whether what is printed passes."""
        return self._holds(self.printed)

    @property
    def true_holds(self) -> bool:
        """Whether the correction passes."""
        return self._holds(self.true)

    @property
    def decides(self) -> bool:
        """Whether the correction passes and what is printed does not."""
        return self.true_holds and not self.printed_holds


Outcome = Number | Decision
Check = Callable[[], Iterable[Outcome]]
