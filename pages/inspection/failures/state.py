"""Scene of the Failures page: the scene of the Fields page, with three embeddings of a run as initial points."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from dmlcore import losses
from dmlcore.geometry.embedded_triplet import EmbeddedTriplet, needs_origin
from dmlcore.loss_analysis.offset_plane import OffsetPlaneLoss
from dmlcore.spec import RunSpec
from dmlcore.typing import Floats
from pages.shared.plane.state import POINTS, Scene
from pages.shared.state import untrusted
from pages.shared.state.untrusted import Point

# If the longest edge is below SMALLEST or a coordinate exceeds LARGEST, the triplet is rescaled by a power of 10.
SMALLEST, LARGEST = 0.2, 60.0


@dataclass(frozen=True)
class Home:
    """Initial view of a triplet: its points, and the loss of its run or, if that has no force field, the default."""

    loss: str
    hyper: Mapping[str, float | str]
    points: tuple[Point, Point, Point]  # in units of `unit`
    view: tuple[float, float, float]
    height: float  # distance of the plane from the origin, in units of the embeddings
    unit: float

    def to_json(self) -> dict[str, Any]:
        """Return the values that the component needs to restore the initial view."""
        return dict(zip(POINTS, self.points, strict=True)) | {
            "view": self.view,
            "loss": self.loss,
            "hyper": untrusted.jsonable(self.hyper),
        }


def home(triplet: EmbeddedTriplet, spec: RunSpec) -> Home:
    """Return the initial view of a triplet of embeddings from a run with this spec."""
    points, unit = triplet.points, unit_of(triplet.points)
    trained = spec.loss.name in losses.names()
    name = spec.loss.name if trained else Scene.loss
    given = dict(spec.loss.parameters) if trained else {}
    a, p, n = ((float(x) / unit, float(y) / unit) for x, y in points)
    low, high = points.min(0) / unit, points.max(0) / unit
    x, y = (low + high) / 2
    half = 1.15 * max(float((high - low).max()), SMALLEST / 2)
    # + 0.0 turns -0 into 0, as JavaScript sends it
    view = (round(float(x), 4) + 0.0, round(float(y), 4) + 0.0, round(half, 4))
    return Home(name, untrusted.hyper(name, given), (a, p, n), view, triplet.height, unit)


def unit_of(points: Floats) -> float:
    """Return the unit in which the points (3, 2) are large enough and fit the canvas: 1 if possible, else a power of
    10.
    """
    span = max(math.dist(points[i], points[j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    reach = float(np.abs(points).max())
    if reach > LARGEST:
        return float(10.0 ** math.ceil(math.log10(reach / LARGEST)))
    return 1.0 if span >= SMALLEST or span == 0 else float(10.0 ** math.floor(math.log10(span / SMALLEST)))


@dataclass(frozen=True)
class RealScene(Scene):
    """Scene whose points start at three embeddings of a run, as given by `home`; the user can drag them."""

    home: Home = field(kw_only=True)

    def default(self) -> RealScene:
        """Return the initial scene: points at the embeddings, loss of the run."""
        return self.at(self.home)

    @classmethod
    def at(cls, home: Home) -> RealScene:
        """Return the scene that shows an initial view."""
        anchor, positive, negative = home.points
        scene = cls(
            home.loss, home.hyper, anchor=anchor, positive=positive, negative=negative, view=home.view, home=home
        )
        return scene.settled()

    def module(self) -> losses.TripletLoss:
        """Return the loss of this scene as a function of coordinates in the plane of the embeddings."""
        return _raised(self.loss, tuple(self.hyper.items()), self.home.height, self.home.unit)

    @property
    def is_home(self) -> bool:
        """True if no point was dragged away from its embedding."""
        return (self.anchor, self.positive, self.negative) == self.home.points

    @property
    def coordinates(self) -> Floats:
        """Points (3, 2) in the units of the embeddings."""
        return self.home.unit * np.array([self.anchor, self.positive, self.negative])

    @property
    def is_plain(self) -> bool:
        """True if the active region has the same closed form as on the Fields page, because unit and height do not
        matter.
        """
        return self.home.unit == 1 and (self.home.height == 0 or not needs_origin(self.module()))


@lru_cache(maxsize=256)
def _raised(name: str, hyper: tuple[tuple[str, float | str], ...], height: float, unit: float) -> OffsetPlaneLoss:
    return OffsetPlaneLoss(losses.formula(name), height, unit, **dict(hyper))


def losses_to_compare(scene: RealScene) -> list[losses.TripletLoss]:
    """Return all triplet losses with parameters.

    The loss of the scene has the parameters set with the sliders, the loss of the run those used in training, and all
    others their defaults.
    """
    chosen = {scene.home.loss: scene.home.hyper} | {scene.loss: scene.hyper}
    return [losses.create(name, **chosen.get(name, {})) for name in losses.names()]
