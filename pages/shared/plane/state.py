"""The scene of the fields page: plain data, from a link or a message of the browser, never trusted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

from dmlcore import losses
from dmlcore.geometry import Probe, margin_from_normalised, normalised_margin
from pages.shared.state import untrusted
from pages.shared.state.untrusted import Point

POINTS = ("anchor", "positive", "negative")
CHOICES = {
    "probe": POINTS,
    "shade": ("energy", "raw", "force", "none"),
    "lines": ("none", "clamped", "raw"),
    "flow": ("arrows", "streams", "none"),
    "margin": ("raw", "normalised"),
    "snap": ("free", "grid", "circle", "equilateral", "isosceles"),
}
FLAGS = ("region", "forces", "edges", "discs", "mining", "cut")


@dataclass(frozen=True)
class Scene:
    """What the plane shows; hyper holds every parameter of the loss, view = (centre x, centre y, half width).

    With margin = "normalised" the margin m1 of hyper follows from mu, s, r and rho; otherwise mu follows from m1.
    """

    loss: str = "distance_sensitive"
    hyper: Mapping[str, float | str] = field(default_factory=lambda: losses.formula("distance_sensitive").defaults)
    margin: str = "raw"
    mu: float | None = normalised_margin(-2.325, 1, 2, 1)  # None where the loss has no normalised margin
    anchor: Point = (0.0, 0.0)
    positive: Point = (0.5, 0.0)
    negative: Point = (0.35, 0.75)
    probe: Probe = "negative"
    shade: str = "energy"  # colour: clamped loss, raw energy, force on the probe
    lines: str = "none"  # equipotentials
    flow: str = "arrows"  # force on the probe: arrows, streamlines
    region: bool = True  # active region of the probe, hatched outside
    forces: bool = True  # resultant forces on the three points
    edges: bool = False  # their parts along the edges, and residuals
    discs: bool = False  # ranking discs and the ellipse of Appendix B
    mining: bool = False  # easy, semi-hard, hard
    cut: bool = False  # energy along the line `line`
    line: tuple[float, ...] = (-1.0, 0.4, 1.5, 0.4)
    snap: str = "free"
    view: tuple[float, float, float] = (0.25, 0.1, 1.5)

    @classmethod
    def of(cls, data: Any) -> Scene:
        """A valid scene from untrusted data: what is missing or senseless falls back, numbers are brought in range."""
        data = data if isinstance(data, Mapping) else {}
        name = untrusted.loss_name(data.get("loss"), cls.loss)
        margin = untrusted.one_of(data.get("margin"), CHOICES["margin"], cls.margin)
        hyper, margin, mu = _margins(name, untrusted.hyper(name, data.get("hyper")), margin, data.get("mu"))
        found: dict[str, Any] = {"loss": name, "hyper": hyper, "mu": mu, "view": _view(data.get("view"), cls.view)}
        found |= {k: untrusted.one_of(data.get(k), options, getattr(cls, k)) for k, options in CHOICES.items()}
        found |= {k: untrusted.flag(data.get(k), getattr(cls, k)) for k in FLAGS}
        found |= {k: untrusted.numbers(data.get(k), getattr(cls, k)) for k in (*POINTS, "line")}
        return cls(**found | {"margin": margin})

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> Scene:
        """The scene of a link, for example ?loss=ranking&m=0.2&n=0.3,0.8."""
        data: dict[str, Any] = {k: query[k] for k in ("loss", "mu", *CHOICES, *FLAGS) if k in query}
        data["hyper"] = dict(query)
        data |= {name: query[name[0]].split(",") for name in POINTS if name[0] in query}
        data |= {k: query[k].split(",") for k in ("view", "line") if k in query}
        return cls.of(data)

    def to_query(self) -> dict[str, str]:
        """What differs from the default scene and the loss's defaults, as readable query parameters."""
        default = Scene.of({"loss": self.loss})
        query = {} if self.loss == Scene.loss else {"loss": self.loss}
        normalised = self.margin == "normalised"
        query |= {
            k: untrusted.plain(v)
            for k, v in self.hyper.items()
            if v != default.hyper[k] and not (normalised and k == "m1")
        }
        if normalised and self.mu is not None:
            query["mu"] = untrusted.plain(self.mu)
        for name in POINTS:
            if getattr(self, name) != getattr(default, name):
                query[name[0]] = ",".join(untrusted.plain(v) for v in getattr(self, name))
        query |= {k: getattr(self, k) for k in CHOICES if getattr(self, k) != getattr(default, k)}
        query |= {k: str(int(getattr(self, k))) for k in FLAGS if getattr(self, k) != getattr(default, k)}
        for k in ("view", "line"):
            if getattr(self, k) != getattr(default, k):
                query[k] = ",".join(untrusted.plain(v) for v in getattr(self, k))
        return query

    def module(self) -> losses.TripletLoss:
        """The loss of this scene."""
        return _module(self.loss, tuple(self.hyper.items()))

    def to_json(self) -> dict[str, Any]:
        """Plain data that `of` reads back; infinity, which JSON lacks, becomes None."""
        return asdict(self) | {"hyper": untrusted.jsonable(self.hyper)}


@lru_cache(maxsize=256)
def _module(name: str, hyper: tuple[tuple[str, float | str], ...]) -> losses.TripletLoss:
    return losses.create(name, **dict(hyper))


def _margins(
    name: str, hyper: dict[str, float | str], margin: str, mu: Any
) -> tuple[dict[str, float | str], str, float | None]:
    """hyper, kind of margin and mu in agreement; other losses than the distance-sensitive have only the raw margin."""
    if not {"s", "r", "rho", "m1"} <= hyper.keys():
        return hyper, "raw", None
    s, r, rho, m1 = (float(hyper[k]) for k in ("s", "r", "rho", "m1"))
    if margin == "normalised" and (given := untrusted.finite(mu)) is not None:
        given = min(max(given, -untrusted.MARGINS), untrusted.MARGINS)
        return hyper | {"m1": margin_from_normalised(given, s, r, rho)}, margin, given
    found = normalised_margin(m1, s, r, rho)
    return hyper, margin, found if math.isfinite(found) else None


def _view(value: Any, default: tuple[float, float, float]) -> tuple[float, float, float]:
    x, y, half = untrusted.numbers(value, default)
    return x, y, min(max(half, 0.05), 50.0)
