"""State of the Sphere page, parsed from untrusted URLs and messages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from dmlcore import losses
from dmlcore.figures.sphere_arrays import Surface
from dmlcore.geometry import Probe
from pages.shared.plane.state import POINTS
from pages.shared.state import untrusted
from pages.shared.state.page_state import ChoiceKind, Flag, Hyper, Loss, Numbers, PageState, Preset
from pages.shared.state.untrusted import Point

SURFACES = ("sphere", "circle")


@dataclass(frozen=True)
class SpherePoint(Numbers):
    """State field for a (longitude, latitude) in degrees; a missing latitude is taken from the default."""

    reach: float = 3600.0

    def read(self, value: Any, default: Any) -> Any:
        if isinstance(value, (list, tuple)) and len(value) == 1:
            value = [*value, default[1]]
        longitude, latitude = super().read(value, default)
        return (longitude + 180) % 360 - 180, min(max(latitude, -90.0), 90.0)


@dataclass(frozen=True)
class SphereScene(PageState):
    """Loss and triplet on the sphere or circle. Points and `eye` are (longitude, latitude) in degrees.

    On the circle, only longitudes matter.
    """

    on: Annotated[Surface, ChoiceKind(SURFACES)] = "sphere"
    loss: Annotated[str, Loss()] = "distance_sensitive"
    hyper: Annotated[Mapping[str, float | str], Hyper()] = field(
        default_factory=lambda: losses.formula("distance_sensitive").defaults
    )
    anchor: Annotated[Point, SpherePoint(key="a")] = (-30.0, 0.0)
    positive: Annotated[Point, SpherePoint(key="p")] = (20.0, 30.0)
    negative: Annotated[Point, SpherePoint(key="n")] = (45.0, -10.0)
    probe: Annotated[Probe, ChoiceKind(POINTS)] = "negative"
    region: Annotated[bool, Flag()] = True  # show the region where the probe has a gradient; the rest is hatched
    arrows: Annotated[bool, Flag()] = True  # show the tangential force on the probe at each position
    radial: Annotated[bool, Flag()] = True  # show the radial component of the forces, which normalisation removes
    # point of the sphere that faces the viewer, as (longitude, latitude) in degrees
    eye: Annotated[Point, SpherePoint(always=True)] = (20.0, 15.0)

    def to_query(self) -> dict[str, str]:
        """Return the values that differ from the defaults as query parameters; on the circle, only longitudes."""
        query = super().to_query()
        if self.on == "circle":
            query.pop("eye", None)
            for name in POINTS:
                longitude = untrusted.plain(getattr(self, name)[0])
                query.pop(name[0], None)
                if longitude != untrusted.plain(getattr(self.default(), name)[0]):
                    query[name[0]] = longitude
        return query

    def module(self) -> losses.TripletLoss:
        """Return the loss of this scene as a module."""
        return losses.create(self.loss, **self.hyper)


# Opened by a URL without parameters. The whole triplet remains visible while the sphere swings back and forth.
FIRST = Preset("The triplet in front", "", "eye=5,12")


@dataclass(frozen=True)
class State:
    """Example triplet: positions on the sphere, and angles on the circle in degrees (None if the circle has no such
    case).
    """

    name: str
    caption: str
    sphere: tuple[Point, Point, Point]
    circle: tuple[float, float, float] | None

    def to_json(self) -> dict[str, Any]:
        """Return the example as JSON data; each point is (longitude, latitude) in degrees."""
        angles = self.circle and dict(zip(POINTS, ([angle, 0.0] for angle in self.circle), strict=True))
        sphere = dict(zip(POINTS, self.sphere, strict=True))
        return {"title": self.name, "caption": self.caption, "sphere": sphere, "circle": angles}


_TETRAHEDRON = round(math.degrees(math.acos(-1 / 3)), 9)  # central angle between two corners of a regular tetrahedron
# central angle of the side 2^(1/3), which minimises d^2/2 + 2/d over equilateral triplets
_METU_SIDE = 2 * math.degrees(math.asin(2 ** (1 / 3) / 2))


def _equilateral(side: float) -> tuple[Point, Point, Point]:
    """Return three points on one parallel whose central angles to each other are `side` degrees."""
    latitude = math.degrees(math.acos(2 / math.sqrt(3) * math.sin(math.radians(side) / 2)))
    return (-120.0, round(latitude, 4)), (120.0, round(latitude, 4)), (0.0, round(latitude, 4))


STATES = (
    State(
        "collapsed pair",
        "A and P coincide: a pull that grows with distance is zero, and a pull of constant size has no direction.",
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
        "A narrow class and a negative that is orthogonal to both of its points.",
        ((-10.0, 0.0), (10.0, 0.0), (0.0, 90.0)),
        (0.0, 10.0, 90.0),
    ),
    State(
        "random directions",
        "Three orthogonal vectors, sides √2, like random points in many dimensions.",
        ((0.0, 0.0), (90.0, 0.0), (0.0, 90.0)),
        None,
    ),
    State(
        "antipodal negative",
        "N is opposite A, as far as possible. The push along a–n is radial, so normalisation removes all of it.",
        ((0.0, 0.0), (40.0, 0.0), (180.0, 0.0)),
        (0.0, 40.0, 180.0),
    ),
    State(
        "regular simplex",
        "Three corners of a regular tetrahedron, 109.5° apart. On the circle: an equilateral triangle.",
        _equilateral(_TETRAHEDRON),
        (0.0, 120.0, -120.0),
    ),
    State(
        "METU triangle",
        "Side 2^(1/3): the minimum of the METU loss (s, r, ρ) = (1, 2, 1) over equilateral triplets.",
        _equilateral(_METU_SIDE),
        None,
    ),
)
