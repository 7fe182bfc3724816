"""The scene of a real triplet: the fields page's, with three embeddings of a run as the points it comes from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from dmlcore import losses
from dmlcore.geometry.embedded_triplet import EmbeddedTriplet, needs_origin
from dmlcore.loss_analysis.offset_plane import RaisedLoss
from dmlcore.spec import RunSpec
from dmlcore.typing import Floats
from pages.shared.plane.state import POINTS, Scene
from pages.shared.state import untrusted
from pages.shared.state.untrusted import Point

SMALLEST, LARGEST = 0.2, 60.0  # the longest edge and the farthest coordinate that are drawn as they are


@dataclass(frozen=True)
class Home:
    """Where a real triplet lies and how it is first looked at: with the loss of its run, if that has a field."""

    loss: str
    hyper: Mapping[str, float | str]
    points: tuple[Point, Point, Point]  # in units of `unit`
    view: tuple[float, float, float]
    height: float  # of the plane above the origin, in the units of the embeddings
    unit: float

    def to_json(self) -> dict[str, Any]:
        """What the page needs to go back to the data."""
        return dict(zip(POINTS, self.points, strict=True)) | {
            "view": self.view,
            "loss": self.loss,
            "hyper": untrusted.jsonable(self.hyper),
        }


def home(triplet: EmbeddedTriplet, spec: RunSpec) -> Home:
    """The home of a triplet of a run."""
    points, unit = triplet.points, unit_of(triplet.points)
    trained = spec.loss.name in losses.names()
    name = spec.loss.name if trained else Scene.loss
    given = dict(spec.loss.parameters) if trained else {}
    a, p, n = ((float(x) / unit, float(y) / unit) for x, y in points)
    low, high = points.min(0) / unit, points.max(0) / unit
    x, y = (low + high) / 2
    half = 1.15 * max(float((high - low).max()), SMALLEST / 2)
    view = (round(float(x), 4) + 0.0, round(float(y), 4) + 0.0, round(half, 4))  # no -0, which JavaScript sends as 0
    return Home(name, untrusted.hyper(name, given), (a, p, n), view, triplet.height, unit)


def unit_of(points: Floats) -> float:
    """1, or the power of ten in which points (3, 2) fit the canvas."""
    span = max(math.dist(points[i], points[j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    reach = float(np.abs(points).max())
    if reach > LARGEST:
        return float(10.0 ** math.ceil(math.log10(reach / LARGEST)))
    return 1.0 if span >= SMALLEST or span == 0 else float(10.0 ** math.floor(math.log10(span / SMALLEST)))


@dataclass(frozen=True)
class RealScene(Scene):
    """A scene whose points are embeddings, at `home` unless somebody has dragged them."""

    home: Home = field(kw_only=True)

    def default(self) -> RealScene:
        """The embeddings where they are, under the loss of their run."""
        return self.at(self.home)

    @classmethod
    def at(cls, home: Home) -> RealScene:
        """The scene that nobody has touched."""
        anchor, positive, negative = home.points
        scene = cls(
            home.loss, home.hyper, anchor=anchor, positive=positive, negative=negative, view=home.view, home=home
        )
        return scene.settled()

    def module(self) -> losses.TripletLoss:
        """The loss of this scene, which sees the embeddings through their plane."""
        return _raised(self.loss, tuple(self.hyper.items()), self.home.height, self.home.unit)

    @property
    def is_home(self) -> bool:
        """Whether the points are where the embeddings are."""
        return (self.anchor, self.positive, self.negative) == self.home.points

    @property
    def coordinates(self) -> Floats:
        """(3, 2) the points in the units of the embeddings."""
        return self.home.unit * np.array([self.anchor, self.positive, self.negative])

    @property
    def is_plain(self) -> bool:
        """Whether the region of the loss is that of the fields page: no height that it sees, no other unit."""
        return self.home.unit == 1 and (self.home.height == 0 or not needs_origin(self.module()))


@lru_cache(maxsize=256)
def _raised(name: str, hyper: tuple[tuple[str, float | str], ...], height: float, unit: float) -> RaisedLoss:
    return RaisedLoss(losses.formula(name), height, unit, **dict(hyper))


def losses_to_compare(scene: RealScene) -> list[losses.TripletLoss]:
    """All losses of the catalogue: the scene's with its sliders, the run's as it was trained, the others by default."""
    chosen = {scene.home.loss: scene.home.hyper} | {scene.loss: scene.hyper}
    return [losses.create(name, **chosen.get(name, {})) for name in losses.names()]
