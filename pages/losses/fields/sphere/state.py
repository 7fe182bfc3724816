"""The scene of the circle-and-sphere page: plain data, from a link or a message of the browser, never trusted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from dmlcore import losses
from dmlcore.figures.sphere_arrays import Surface
from dmlcore.geometry import Probe
from pages.shared.state import untrusted
from pages.shared.state.untrusted import Point

POINTS = ("anchor", "positive", "negative")
SURFACES = ("sphere", "circle")
_FLAGS = ("region", "arrows", "radial")


@dataclass(frozen=True)
class SphereScene:
    """What is shown: points and eye as (longitude, latitude) in degrees; the circle is the equator, latitudes idle."""

    on: Surface = "sphere"
    loss: str = "distance_sensitive"
    hyper: Mapping[str, float | str] = field(default_factory=lambda: losses.formula("distance_sensitive").defaults)
    anchor: Point = (-30.0, 0.0)
    positive: Point = (20.0, 30.0)
    negative: Point = (45.0, -10.0)
    probe: Probe = "negative"
    region: bool = True  # where the probe is active; hatched elsewhere
    arrows: bool = True  # tangential force on the probe, were it there
    radial: bool = True  # the part of the forces that normalisation removes
    eye: Point = (20.0, 15.0)  # the point of the sphere that faces the visitor

    @classmethod
    def of(cls, data: Any) -> SphereScene:
        """A valid scene from untrusted data: what is missing or senseless falls back, numbers are brought in range."""
        default = cls()
        data = data if isinstance(data, Mapping) else {}
        name = untrusted.loss_name(data.get("loss"), default.loss)
        return cls(
            on=cast(Surface, untrusted.one_of(data.get("on"), SURFACES, default.on)),
            loss=name,
            hyper=untrusted.hyper(name, data.get("hyper")),
            anchor=_place(data.get("anchor"), default.anchor),
            positive=_place(data.get("positive"), default.positive),
            negative=_place(data.get("negative"), default.negative),
            probe=cast(Probe, untrusted.one_of(data.get("probe"), POINTS, default.probe)),
            region=untrusted.flag(data.get("region"), default.region),
            arrows=untrusted.flag(data.get("arrows"), default.arrows),
            radial=untrusted.flag(data.get("radial"), default.radial),
            eye=_place(data.get("eye"), default.eye),
        )

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> SphereScene:
        """The scene of a link, for example ?on=circle&loss=ranking&m=0.2&n=120, or ?n=30,-45 on the sphere."""
        data: dict[str, Any] = {k: query[k] for k in ("on", "loss", "probe", *_FLAGS) if k in query}
        data["hyper"] = dict(query)
        places = {name: query[name[0]] for name in POINTS if name[0] in query}
        if "eye" in query:
            places["eye"] = query["eye"]
        for name, text in places.items():
            parts = text[:80].split(",")
            data[name] = parts if len(parts) > 1 else [text, getattr(cls(), name)[1]]
        return cls.of(data)

    def to_query(self) -> dict[str, str]:
        """What differs from the default scene and the loss's defaults, as readable query parameters."""
        default = SphereScene.of({"loss": self.loss})
        query = {k: getattr(self, k) for k in ("on", "probe") if getattr(self, k) != getattr(default, k)}
        query |= {} if self.loss == SphereScene().loss else {"loss": self.loss}
        query |= {k: untrusted.plain(v) for k, v in self.hyper.items() if v != default.hyper[k]}
        for name, key in (*((name, name[0]) for name in POINTS), ("eye", "eye")):
            here, there = getattr(self, name), getattr(default, name)
            if self.on == "circle":  # the latitudes wait unseen
                query |= {key: untrusted.plain(here[0])} if here[0] != there[0] and key != "eye" else {}
            elif here != there:
                query[key] = ",".join(untrusted.plain(v) for v in here)
        query |= {k: str(int(getattr(self, k))) for k in _FLAGS if getattr(self, k) != getattr(default, k)}
        return query

    def module(self) -> losses.TripletLoss:
        """The loss of this scene."""
        return losses.create(self.loss, **self.hyper)

    def to_json(self) -> dict[str, Any]:
        """Plain data that `of` reads back; infinity, which JSON lacks, becomes None."""
        return asdict(self) | {"hyper": untrusted.jsonable(self.hyper)}


def _place(value: Any, default: Point) -> Point:
    longitude, latitude = untrusted.numbers(value, default, reach=3600.0)
    return (longitude + 180) % 360 - 180, min(max(latitude, -90.0), 90.0)


@dataclass(frozen=True)
class State:
    """A triplet worth looking at: places on the sphere, and angles on the circle (None where there is none)."""

    name: str
    caption: str
    sphere: tuple[Point, Point, Point]
    circle: tuple[float, float, float] | None

    def to_json(self) -> dict[str, Any]:
        """Each point as (longitude, latitude) in degrees, on either surface."""
        angles = self.circle and dict(zip(POINTS, ([angle, 0.0] for angle in self.circle), strict=True))
        sphere = dict(zip(POINTS, self.sphere, strict=True))
        return {"name": self.name, "caption": self.caption, "sphere": sphere, "circle": angles}


_TETRAHEDRON = round(math.degrees(math.acos(-1 / 3)), 9)  # angle between two corners, seen from the centre
_METU_SIDE = 2 * math.degrees(math.asin(2 ** (1 / 3) / 2))  # angle of side 2^(1/3), least d^2/2 + 2/d of an equilateral


def _equilateral(side: float) -> tuple[Point, Point, Point]:
    """Three places, each `side` degrees from the other two, on one parallel about the pole."""
    latitude = math.degrees(math.acos(2 / math.sqrt(3) * math.sin(math.radians(side) / 2)))
    return (-120.0, round(latitude, 4)), (120.0, round(latitude, 4)), (0.0, round(latitude, 4))


STATES = (
    State(
        "collapsed pair",
        "A and P coincide: no pull is left, and a pull of constant size has no direction.",
        ((0.0, 10.0), (0.0, 10.0), (60.0, 10.0)),
        (0.0, 0.0, 60.0),
    ),
    State(
        "hard negative",
        "N is nearer to A than P is.",
        ((0.0, 0.0), (60.0, 10.0), (25.0, -5.0)),
        (0.0, 60.0, -25.0),
    ),
    State(
        "orthogonal classes",
        "A narrow class, and a negative at right angles to both its points.",
        ((-10.0, 0.0), (10.0, 0.0), (0.0, 90.0)),
        (0.0, 10.0, 90.0),
    ),
    State(
        "random directions",
        "Three orthogonal vectors, sides √2: where random points of many dimensions lie.",
        ((0.0, 0.0), (90.0, 0.0), (0.0, 90.0)),
        None,
    ),
    State(
        "antipodal negative",
        "N opposite A: the farthest it can be. All of the push along a-n is radial, so nothing of it is left.",
        ((0.0, 0.0), (40.0, 0.0), (180.0, 0.0)),
        (0.0, 40.0, 180.0),
    ),
    State(
        "regular simplex",
        "Three corners of a regular tetrahedron, 109.5° apart; on the circle an equilateral triangle.",
        _equilateral(_TETRAHEDRON),
        (0.0, 120.0, -120.0),
    ),
    State(
        "METU triangle",
        "Side 2^(1/3): among equilateral triplets the METU loss (s, r, ρ) = (1, 2, 1) is least here.",
        _equilateral(_METU_SIDE),
        None,
    ),
)
