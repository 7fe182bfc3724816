"""Self-validating hyper-parameters: one declaration gives slider, symbol, help and check."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

LARGEST = 3.4e38  # float32 holds no more, and losses compute in it


@dataclass(frozen=True)
class Slider:
    """A real hyper-parameter.

    `low` and `high` bound the slider a visitor moves; values outside them are still valid (papers use them) as
    long as they exceed `above`. `optional` adds "off", that is +infinity (an open upper clamp, for example).
    """

    low: float
    high: float
    symbol: str
    help: str
    step: float = 0.01
    log: bool = False
    above: float = -math.inf
    optional: bool = False

    def __post_init__(self) -> None:
        if not (self.low < self.high and self.step > 0 and self.low > self.above):
            raise ValueError(f"slider {self.symbol}: needs above < low < high and step > 0, got {self}")
        if self.log and self.low <= 0:
            raise ValueError(f"slider {self.symbol}: a logarithmic slider needs low > 0, got {self.low}")

    def check(self, name: str, value: object) -> float:
        """Return `value` as a float; raise ValueError or TypeError naming the parameter `name` and its range."""
        if value is None and self.optional:
            return math.inf
        if isinstance(value, bool) or not isinstance(value, Real):  # Real: numpy scalars too
            raise TypeError(f"{name} must be a number, got {value!r}")
        number = float(value)
        if math.isnan(number) or (math.isinf(number) and not (self.optional and number > 0)):
            raise ValueError(f"{name} must be finite, got {number}")
        if LARGEST < abs(number) < math.inf:
            raise ValueError(f"{name} must lie within {LARGEST:.1e} of 0, got {number:g}")
        if number <= self.above:
            raise ValueError(f"{name} must be greater than {self.above:g}, got {number:g}")
        return number


@dataclass(frozen=True)
class Choice:
    """A hyper-parameter with named values."""

    options: tuple[str, ...]
    symbol: str
    help: str

    def check(self, name: str, value: object) -> str:
        """Return `value`; raise ValueError naming the parameter `name` and its options."""
        if not isinstance(value, str) or value not in self.options:
            raise ValueError(f"{name} must be one of {', '.join(self.options)}, got {value!r}")
        return value


Parameter = Slider | Choice
