"""Strict parser of figure settings, which reports every mistake to the author of a lesson."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from dmlcore import losses
from dmlcore.catalogue import Choice

LIMIT = 1e6  # largest coordinate or margin


class FigureSettings:
    """Settings of a figure by name; settings that remain unread are mistakes."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = dict(given)
        self._known: list[str] = []

    def text(self, name: str, default: str) -> str:
        """Remove and return the text of a setting."""
        self._known.append(name)
        return self._given.pop(name, default)

    def choice(self, name: str, default: str, options: Iterable[str]) -> str:
        """Return one of the allowed names; raise ValueError with a list of them otherwise."""
        value, names = self.text(name, default), list(options)
        if value not in names:
            raise ValueError(f"{name} must be one of {', '.join(names)}, got {value!r}")
        return value

    def number(self, name: str, default: float, low: float = -LIMIT, high: float = LIMIT) -> float:
        """Return a number from low to high; raise ValueError otherwise."""
        return _number(name, self.text(name, repr(default)), low, high)

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        """Return an integer from low to high."""
        value = self.number(name, default, low, high)
        if value != int(value):
            raise ValueError(f"{name} must be a whole number, got {value:g}")
        return int(value)

    def flag(self, name: str, default: bool) -> bool:
        """Return a flag, written as 1 or 0."""
        return self.choice(name, str(int(default)), ("0", "1")) == "1"

    def numbers(self, name: str, default: tuple[float, ...]) -> tuple[float, ...]:
        """Return numbers separated by commas, as many as the default has."""
        parts = self.text(name, ",".join(map(repr, default))).split(",")
        if len(parts) != len(default):
            raise ValueError(f"{name} must be {len(default)} numbers with commas between them, got {','.join(parts)!r}")
        return tuple(_number(name, part, -LIMIT, LIMIT) for part in parts)

    def loss(self, default: str = "distance_sensitive") -> tuple[str, dict[str, float | str]]:
        """Return a triplet loss with its hyper-parameters, each a setting of its own."""
        name = self.choice("loss", default, losses.names())
        hyper: dict[str, float | str] = {}
        for key, parameter in losses.formula(name).parameters.items():
            self._known.append(key)
            if key in self._given:
                value = self._given.pop(key)
                hyper[key] = value if isinstance(parameter, Choice) else _number(key, value, -LIMIT, math.inf)
        return name, losses.formula(name).resolve(hyper)

    def end(self) -> None:
        """Raise ValueError if a setting was not read."""
        if self._given:
            raise ValueError(
                f"this figure has no setting {', '.join(sorted(self._given))}; it has: {', '.join(self._known)}"
            )


def _number(name: str, text: str, low: float, high: float) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{name} must be a number, got {text!r}") from None
    if not low <= value <= high:
        raise ValueError(f"{name} must lie from {low:g} to {high:g}, got {text}")
    return value
