"""Losses with all their hyper-parameters, shown side by side; parsed from untrusted links and messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dmlcore import losses
from pages.shared.state import untrusted
from pages.shared.state.page_state import Kind

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


@dataclass(frozen=True)
class Panels(Kind):
    """Several losses shown side by side, each with hyper-parameters.

    In a link they are written as l1=ranking,m:0.2 and so on up to l4. `defaults` holds one default per position;
    `fewest` is the minimum number of losses.
    """

    defaults: tuple[Panel, ...]
    fewest: int = 2

    def read(self, value: Any, default: Any) -> Any:
        given = value if isinstance(value, (list, tuple)) else ()
        panels = tuple(Panel.of(p, d) for p, d in zip(given, self.defaults, strict=False))
        return panels + self.defaults[len(panels) : self.fewest]

    def from_query(self, name: str, query: Mapping[str, str]) -> Any:
        texts = [query.get(f"l{i + 1}") for i in range(len(self.defaults))]
        places = zip(texts, self.defaults, strict=True)
        read = [t if t is None else vars(Panel.from_text(t, d)) for t, d in places]
        return read[: self.fewest] + [p for p in read[self.fewest :] if p]

    def to_query(self, name: str, state: Any, default: Any) -> dict[str, str]:
        texts = {f"l{i + 1}": panel.to_text() for i, panel in enumerate(getattr(state, name))}
        known = [panel.to_text() for panel in self.defaults[: self.fewest]]
        return {k: text for i, (k, text) in enumerate(texts.items()) if i >= self.fewest or text != known[i]}

    def json(self, value: Any) -> Any:
        return [{"loss": p.loss, "hyper": untrusted.jsonable(p.hyper)} for p in value]
