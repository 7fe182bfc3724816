"""One loss among several beside each other, with every hyper-parameter; from a link or message, never trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dmlcore import losses
from pages.shared.state import untrusted

_LONGEST = 400  # characters of one loss in a link


@dataclass(frozen=True)
class Panel:
    """One loss with every hyper-parameter."""

    loss: str
    hyper: Mapping[str, float | str]

    @classmethod
    def of(cls, data: Any, default: Panel) -> Panel:
        """From {"loss": ..., "hyper": {...}}; what makes no sense falls back."""
        if not isinstance(data, Mapping):
            return default
        name = untrusted.loss_name(data.get("loss"), default.loss)
        hyper = data.get("hyper")
        if hyper is None and name == default.loss:
            return default
        return cls(name, untrusted.hyper(name, hyper))

    @classmethod
    def from_text(cls, text: str, default: Panel) -> Panel:
        """From the link's ranking,m:0.2."""
        name, *values = text[:_LONGEST].split(",")
        return cls.of({"loss": name, "hyper": dict(v.split(":", 1) for v in values if ":" in v)}, default)

    def to_text(self) -> str:
        """The loss and what differs from its defaults."""
        defaults = losses.formula(self.loss).defaults
        return ",".join([self.loss, *(f"{k}:{untrusted.exact(v)}" for k, v in self.hyper.items() if v != defaults[k])])

    def module(self) -> losses.TripletLoss:
        """The loss itself."""
        return losses.create(self.loss, **self.hyper)


def panel(name: str, **hyper: float | str | None) -> Panel:
    """A loss with these hyper-parameters and the defaults of the others."""
    return Panel(name, untrusted.hyper(name, hyper))
