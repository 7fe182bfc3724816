"""The scene of the fields page: plain data, from a link or a message of the browser, never trusted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated, Any, Self

from dmlcore import losses
from dmlcore.geometry import Probe, margin_from_normalised, normalised_margin
from pages.shared.state import untrusted
from pages.shared.state.page_state import (
    ChoiceKind,
    Flag,
    Hyper,
    Kind,
    Loss,
    NumberKind,
    Numbers,
    PageState,
    Preset,
    WindowKind,
)
from pages.shared.state.untrusted import Point

POINTS = ("anchor", "positive", "negative")
SHADES = {
    "energy": "clamped loss",
    "raw": "energy before the clamp",
    "force": "force on the scanning point",
    "none": "no colour",
}
LINES = {
    "none": "no equipotentials",
    "clamped": "equipotentials of the loss",
    "raw": "equipotentials before the clamp",
}
FLOWS = {"arrows": "force arrows", "streams": "streamlines", "none": "no arrows"}
SNAPS = {
    "free": "move freely",
    "grid": "snap to grid",
    "circle": "snap to unit circle",
    "equilateral": "snap to equilateral",
    "isosceles": "snap to isosceles",
}
HEAVIEST = 3.0  # marble of a landscape
LANDSCAPE = "losses/fields/landscape/landscape.js"  # of the assets: loaded where one is asked for
# What a bare address opens: with a normalised margin the field stays active while other parameters move. Links that
# name no kind of margin have the raw one, as they always had.
FIRST = Preset("Normalised margin", "", "margin=normalised")


class NormalisedMargin(Kind):
    """A normalised margin where it is given: nothing stands in for it, as it follows from the raw one."""

    def read(self, value: Any, default: Any) -> Any:
        return untrusted.finite(value)

    def to_query(self, name: str, state: Any, default: Any) -> dict[str, str]:
        return {} if state.mu is None else {name: self.text(state.mu)}


@dataclass(frozen=True)
class Scene(PageState):
    """What the plane shows; hyper holds every parameter of the loss, view = (centre x, centre y, half width).

    With margin = "normalised" the margin m1 of hyper follows from mu, s, r and rho; otherwise mu follows from m1.
    """

    loss: Annotated[str, Loss()] = "distance_sensitive"
    hyper: Annotated[Mapping[str, float | str], Hyper()] = field(
        default_factory=lambda: losses.formula("distance_sensitive").defaults
    )
    margin: Annotated[str, ChoiceKind(("raw", "normalised"))] = "raw"
    mu: Annotated[float | None, NormalisedMargin()] = normalised_margin(-2.325, 1, 2, 1)  # None where the loss has none
    anchor: Annotated[Point, Numbers(key="a")] = (0.0, 0.0)
    positive: Annotated[Point, Numbers(key="p")] = (0.5, 0.0)
    negative: Annotated[Point, Numbers(key="n")] = (0.35, 0.75)
    probe: Annotated[Probe, ChoiceKind(POINTS)] = "negative"
    shade: Annotated[str, ChoiceKind(SHADES)] = "energy"
    lines: Annotated[str, ChoiceKind(LINES)] = "none"
    flow: Annotated[str, ChoiceKind(FLOWS)] = "arrows"  # force on the probe
    region: Annotated[bool, Flag()] = True  # active region of the probe, hatched outside
    forces: Annotated[bool, Flag()] = True  # resultant forces on the three points
    edges: Annotated[bool, Flag()] = False  # their parts along the edges, and residuals
    discs: Annotated[bool, Flag()] = False  # ranking discs and the ellipse of Appendix B
    mining: Annotated[bool, Flag()] = False  # easy, semi-hard, hard
    cut: Annotated[bool, Flag()] = False  # energy along the line `line`
    line: Annotated[tuple[float, ...], Numbers()] = (-1.0, 0.4, 1.5, 0.4)
    snap: Annotated[str, ChoiceKind(SNAPS)] = "free"
    landscape: Annotated[bool, Flag()] = False  # the energy of the probe as a surface in space
    mass: Annotated[float, NumberKind(0.0, HEAVIEST)] = 0.0  # of the marble on it; 0: gradient flow
    view: Annotated[tuple[float, float, float], WindowKind()] = (0.25, 0.1, 1.5)

    def settled(self) -> Self:
        """Kind of margin, m1 and mu in agreement; other losses than the distance-sensitive have only the raw margin."""
        if not {"s", "r", "rho", "m1"} <= self.hyper.keys():
            return replace(self, margin="raw", mu=None)
        s, r, rho, m1 = (float(self.hyper[k]) for k in ("s", "r", "rho", "m1"))
        mu = self.mu if self.margin == "normalised" and self.mu is not None else normalised_margin(m1, s, r, rho)
        if self.margin == "raw" or not math.isfinite(mu):
            return replace(self, margin="raw", mu=mu if math.isfinite(mu) else None)
        mu = min(max(mu, -untrusted.MARGINS), untrusted.MARGINS)
        return replace(self, hyper={**self.hyper, "m1": margin_from_normalised(mu, s, r, rho)}, mu=mu)

    def to_query(self) -> dict[str, str]:
        """What differs from the default; of m1 and mu the one that the other follows from."""
        query = super().to_query()
        query.pop("m1" if self.margin == "normalised" else "mu", None)
        if not query and self.default() == Scene():  # a bare address opens `FIRST`
            return {"margin": self.margin}
        return query

    def module(self) -> losses.TripletLoss:
        """The loss of this scene."""
        return _module(self.loss, tuple(self.hyper.items()))


@lru_cache(maxsize=256)
def _module(name: str, hyper: tuple[tuple[str, float | str], ...]) -> losses.TripletLoss:
    return losses.create(name, **dict(hyper))
