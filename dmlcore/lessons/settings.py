"""Strict parser for the settings of figures, which reports every mistake to the author of a lesson."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from dmlcore import losses
from dmlcore.catalogue import Choice

LIMIT = 1e6  # largest absolute value of coordinates and margins


class FigureSettings:
    """Settings of a figure by name; `end` reports settings that no method has read."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = dict(given)
        self._known: list[str] = []

    def text(self, name: str, default: str) -> str:
        """Return the text of a setting and mark the setting as read."""
        self._known.append(name)
        return self._given.pop(name, default)

    def choice(self, name: str, default: str, options: Iterable[str]) -> str:
        """Return a setting that must be one of `options`; raise ValueError with the options otherwise."""
        value, names = self.text(name, default), list(options)
        if value not in names:
            raise ValueError(f"{name} must be one of {', '.join(names)}, got {value!r}")
        return value

    def number(self, name: str, default: float, low: float = -LIMIT, high: float = LIMIT) -> float:
        """Return a number; raise ValueError unless it is between `low` and `high`, both inclusive."""
        return _number(name, self.text(name, repr(default)), low, high)

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        """Return an integer; raise ValueError unless it is between `low` and `high`, both inclusive."""
        value = self.number(name, default, low, high)
        if value != int(value):
            raise ValueError(f"{name} must be a whole number, got {value:g}")
        return int(value)

    def flag(self, name: str, default: bool) -> bool:
        """Return a Boolean setting, written as 1 or 0."""
        return self.choice(name, str(int(default)), ("0", "1")) == "1"

    def numbers(self, name: str, default: tuple[float, ...]) -> tuple[float, ...]:
        """Return comma-separated numbers; their count must equal that of the default."""
        parts = self.text(name, ",".join(map(repr, default))).split(",")
        if len(parts) != len(default):
            raise ValueError(f"{name} must be {len(default)} numbers with commas between them, got {','.join(parts)!r}")
        return tuple(_number(name, part, -LIMIT, LIMIT) for part in parts)

    def loss(self, default: str = "distance_sensitive") -> tuple[str, dict[str, float | str]]:
        """Return the name of a triplet loss and its hyper-parameters, each of which is a separate setting."""
        name = self.choice("loss", default, losses.names())
        hyper: dict[str, float | str] = {}
        for key, parameter in losses.formula(name).parameters.items():
            self._known.append(key)
            if key in self._given:
                value = self._given.pop(key)
                hyper[key] = value if isinstance(parameter, Choice) else _number(key, value, -LIMIT, math.inf)
        return name, losses.formula(name).resolve(hyper)

    def end(self) -> None:
        """Raise ValueError if there are settings that no method has read."""
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
