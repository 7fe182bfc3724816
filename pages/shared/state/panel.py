"""Loss with all its hyper-parameters, one of several shown side by side; parsed from untrusted links and messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dmlcore import losses
from pages.shared.state import untrusted

_LONGEST = 400  # maximum number of characters of one panel in a link


@dataclass(frozen=True)
class Panel:
    """Loss with all its hyper-parameters, shown next to other losses."""

    loss: str
    hyper: Mapping[str, float | str]

    @classmethod
    def of(cls, data: Any, default: Panel) -> Panel:
        """Parse {"loss": ..., "hyper": {...}}; replace missing or invalid values with those of `default`."""
        if not isinstance(data, Mapping):
            return default
        name = untrusted.loss_name(data.get("loss"), default.loss)
        hyper = data.get("hyper")
        if hyper is None and name == default.loss:
            return default
        return cls(name, untrusted.hyper(name, hyper))

    @classmethod
    def from_text(cls, text: str, default: Panel) -> Panel:
        """Parse the text of a panel in a link, for example ranking,m:0.2."""
        name, *values = text[:_LONGEST].split(",")
        return cls.of({"loss": name, "hyper": dict(v.split(":", 1) for v in values if ":" in v)}, default)

    def to_text(self) -> str:
        """Return the text for a link: the loss, and the hyper-parameters that differ from the defaults of the loss."""
        defaults = losses.formula(self.loss).defaults
        return ",".join([self.loss, *(f"{k}:{untrusted.exact(v)}" for k, v in self.hyper.items() if v != defaults[k])])

    def module(self) -> losses.TripletLoss:
        """Return the loss module with the hyper-parameters of this panel."""
        return losses.create(self.loss, **self.hyper)


def panel(name: str, **hyper: float | str | None) -> Panel:
    """Return a panel with the loss `name`, the given hyper-parameters, and default values for all others."""
    return Panel(name, untrusted.hyper(name, hyper))
