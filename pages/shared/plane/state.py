"""State of a page that shows a triplet in the plane, parsed from untrusted URLs and messages."""

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
    "force": "force on the moved point",
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
HEAVIEST = 3.0  # maximum mass of the marble that rolls on the energy surface
# path below assets/; the file is loaded only when the energy surface is shown
LANDSCAPE = "losses/fields/landscape/landscape.js"
# State that a URL without parameters opens. With a normalised margin the field stays active while other parameters
# change. A URL with parameters but without `margin` uses the raw margin, for compatibility.
FIRST = Preset("Normalised margin", "", "margin=normalised")


class NormalisedMargin(Kind):
    """Kind of the state field `mu`, the normalised margin.

    The field has no default in links: if a link omits mu, mu is computed from the raw margin m1.
    """

    def read(self, value: Any, default: Any) -> Any:
        return untrusted.finite(value)

    def to_query(self, name: str, state: Any, default: Any) -> dict[str, str]:
        return {} if state.mu is None else {name: self.text(state.mu)}


@dataclass(frozen=True)
class Scene(PageState):
    """Loss, triplet and layers shown in the plane.

    `hyper` holds all parameters of the loss; `view` is (centre x, centre y, half width); `probe` names the point
    (anchor, positive or negative) for which the force field is drawn. If `margin` is "normalised", the margin m1 in
    `hyper` is computed from mu, s, r and rho; otherwise mu is computed from m1.
    """

    loss: Annotated[str, Loss()] = "distance_sensitive"
    hyper: Annotated[Mapping[str, float | str], Hyper()] = field(
        default_factory=lambda: losses.formula("distance_sensitive").defaults
    )
    margin: Annotated[str, ChoiceKind(("raw", "normalised"))] = "raw"
    # None if the loss has no normalised margin
    mu: Annotated[float | None, NormalisedMargin()] = normalised_margin(-2.325, 1, 2, 1)
    anchor: Annotated[Point, Numbers(key="a")] = (0.0, 0.0)
    positive: Annotated[Point, Numbers(key="p")] = (0.5, 0.0)
    negative: Annotated[Point, Numbers(key="n")] = (0.35, 0.75)
    probe: Annotated[Probe, ChoiceKind(POINTS)] = "negative"
    shade: Annotated[str, ChoiceKind(SHADES)] = "energy"
    lines: Annotated[str, ChoiceKind(LINES)] = "none"
    flow: Annotated[str, ChoiceKind(FLOWS)] = "arrows"  # how the force on the probe is drawn
    region: Annotated[bool, Flag()] = True  # show the active region of the probe; the outside is hatched
    forces: Annotated[bool, Flag()] = True  # show the total forces on the three points
    # show the components of the forces along the edges, and what remains of each force
    edges: Annotated[bool, Flag()] = False
    discs: Annotated[bool, Flag()] = False  # show the ranking discs and the ellipse of Appendix B
    mining: Annotated[bool, Flag()] = False  # show the regions of easy, semi-hard and hard triplets
    cut: Annotated[bool, Flag()] = False  # show a plot of the energy along the segment `line`
    line: Annotated[tuple[float, ...], Numbers()] = (-1.0, 0.4, 1.5, 0.4)
    snap: Annotated[str, ChoiceKind(SNAPS)] = "free"
    landscape: Annotated[bool, Flag()] = False  # show the energy as a 3-D surface over the positions of the probe
    # mass of the marble on the energy surface; 0 means that it follows the gradient flow
    mass: Annotated[float, NumberKind(0.0, HEAVIEST)] = 0.0
    view: Annotated[tuple[float, float, float], WindowKind()] = (0.25, 0.1, 1.5)

    def settled(self) -> Self:
        """Return a copy with consistent margins m1 (raw) and mu (normalised); mu is None if the loss has no mu."""
        if not {"s", "r", "rho", "m1"} <= self.hyper.keys():
            return replace(self, margin="raw", mu=None)
        s, r, rho, m1 = (float(self.hyper[k]) for k in ("s", "r", "rho", "m1"))
        mu = self.mu if self.margin == "normalised" and self.mu is not None else normalised_margin(m1, s, r, rho)
        if self.margin == "raw" or not math.isfinite(mu):
            return replace(self, margin="raw", mu=mu if math.isfinite(mu) else None)
        mu = min(max(mu, -untrusted.MARGINS), untrusted.MARGINS)
        return replace(self, hyper={**self.hyper, "m1": margin_from_normalised(mu, s, r, rho)}, mu=mu)

    def to_query(self) -> dict[str, str]:
        """Return the URL query parameters for the values that differ from the defaults.

        Of m1 and mu, only the one that `margin` selects is included.
        """
        query = super().to_query()
        query.pop("m1" if self.margin == "normalised" else "mu", None)
        if not query and self.default() == Scene():  # a URL without parameters would open `FIRST` instead
            return {"margin": self.margin}
        return query

    def module(self) -> losses.TripletLoss:
        """Return the loss module of this scene."""
        return _module(self.loss, tuple(self.hyper.items()))


@lru_cache(maxsize=256)
def _module(name: str, hyper: tuple[tuple[str, float | str], ...]) -> losses.TripletLoss:
    return losses.create(name, **dict(hyper))
