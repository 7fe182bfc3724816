"""Kinds of figures that a lesson can show: parsers for their settings, and functions that draw them.

Settings have the format of the URL query string of the figure's page: `loss=ranking&m=0.4&n=0.5,1.35`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor

from dmlcore import losses, mining
from dmlcore.experiments import studies
from dmlcore.figures.sphere_arrays import Surface
from dmlcore.geometry import margin_from_normalised
from dmlcore.geometry.sphere import on_circle, on_sphere
from dmlcore.lessons.recordings import (
    EnsembleShown,
    NeighboursShown,
    ProjectionsShown,
    Recorded,
    draw_ensemble,
    draw_neighbours,
    draw_projections,
)
from dmlcore.lessons.settings import FigureSettings
from dmlcore.pooling.analysis.gate import Gate
from dmlcore.pooling.analysis.red_blue import MAPS, STEPS
from dmlcore.simulation import MOST_STEPS, NORMALISATIONS, OPTIMISERS, SIDES, STARTS, Dynamics, Simulation, Spec
from dmlcore.simulation.spec import ALL, MOST_CLASSES, MOST_PER_CLASS
from dmlcore.typing import Ints

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NODES = 161  # grid nodes per side of a force field; few suffice for the small figures of handouts
PROBES = ("negative", "anchor", "positive")
Given = Mapping[str, str]


@dataclass(frozen=True)
class TripletShown:
    """A triplet under a loss, with points (2,) in the plane, or unit vectors (2,) on the circle or (3,) on the sphere.

    `drawing` holds arguments for the drawing function.
    """

    loss: losses.TripletLoss
    anchor: Tensor
    positive: Tensor
    negative: Tensor
    on: str  # "plane", "sphere" or "circle"
    drawing: Mapping[str, Any] = field(default_factory=dict)

    @property
    def points(self) -> tuple[Tensor, Tensor, Tensor]:
        """Anchor, positive and negative."""
        return self.anchor, self.positive, self.negative


@dataclass(frozen=True)
class ChargesShown:
    """State of a figure of embeddings that move as charges: specification of the simulation and displayed step."""

    spec: Spec
    step: int

    @property
    def simulation(self) -> Simulation:
        """Simulation with all frames up to `step` computed."""
        made = _simulation(self.spec)
        made.frame(self.step)
        return made


@dataclass(frozen=True)
class TransportShown:
    """State of an optimal-transport pooling figure: pixels (10, 10, 2) and prototypes (m, 2) in units of 1 / STEPS."""

    pixels: Ints
    prototypes: Ints
    mu: float
    epsilon: float

    @property
    def gate(self) -> Gate:
        """Solution of the transport problem."""
        from dmlcore.figures.transports import solved  # imported here because it loads scipy

        return solved(self.pixels, self.prototypes, self.mu, self.epsilon)


@dataclass(frozen=True)
class StudyShown:
    """State of a figure of study results: the name of a study with shipped results."""

    study: str


Shown = TripletShown | ChargesShown | TransportShown | StudyShown | Recorded[Any]


@dataclass(frozen=True)
class FigureKind:
    """Kind of figure: the class of its state, its parser and its drawing function."""

    kind: type
    read: Callable[[Given], Shown]  # raises ValueError with the name of the setting and its allowed values
    draw: Callable[[Any], Figure]


def _plane(given: Given) -> TripletShown:
    """Return the state of the figure for settings in the format of the Fields page's URL."""
    settings = FigureSettings(given)
    name, hyper = settings.loss()
    if settings.choice("margin", "raw", ("raw", "normalised")) == "normalised":
        s, r, rho = (float(hyper[k]) for k in ("s", "r", "rho"))
        hyper["m1"] = margin_from_normalised(settings.number("mu", 0.0), s, r, rho)
    a, p, n = (
        torch.tensor(settings.numbers(key, place), dtype=torch.float64)
        for key, place in (("a", (0.0, 0.0)), ("p", (0.5, 0.0)), ("n", (0.35, 0.75)))
    )
    lines = settings.choice("lines", "none", ("none", "clamped", "raw"))
    flow = settings.choice("flow", "arrows", ("arrows", "streams", "none"))
    drawing = {
        "probe": settings.choice("probe", "negative", PROBES),
        "shade": settings.choice("shade", "energy", ("energy", "raw", "force", "none")),
        "contours": None if lines == "none" else lines,
        "arrows": flow == "arrows",
        "streams": flow == "streams",
        "region": settings.flag("region", True),
        "forces": settings.flag("forces", True),
        "decomposed": settings.flag("edges", False),
        "discs": settings.flag("discs", False),
        "mining": settings.flag("mining", False),
        "view": settings.numbers("view", (0.25, 0.1, 1.5)),
    }
    settings.choice("snap", "free", ("free", "grid", "circle", "equilateral", "isosceles"))
    settings.flag("cut", False)
    settings.numbers("line", (-1.0, 0.4, 1.5, 0.4))
    settings.end()
    return TripletShown(losses.create(name, **hyper), a, p, n, "plane", drawing | {"n": NODES})


def _draw_plane(shown: TripletShown) -> Figure:
    from dmlcore.figures.fields import draw_field

    places = [(float(x), float(y)) for x, y in shown.points]
    return draw_field(shown.loss, *places, title="", plain=True, **shown.drawing)


def _sphere(given: Given) -> TripletShown:
    """Return the state of the figure for settings in the format of the Sphere page's URL.

    Points are longitude and latitude in degrees, or, on the circle, an angle in degrees.
    """
    settings = FigureSettings(given)
    on = settings.choice("on", "sphere", ("sphere", "circle"))
    name, hyper = settings.loss()
    places = []
    for key, (longitude, latitude) in (("a", (-30.0, 0.0)), ("p", (20.0, 30.0)), ("n", (45.0, -10.0))):
        place_text = settings.text(key, f"{longitude},{latitude}")
        place = place_text if "," in place_text else f"{place_text},{latitude if on == 'sphere' else 0.0}"
        places.append(FigureSettings({key: place}).numbers(key, (longitude, latitude)))
    drawing = {
        "probe": settings.choice("probe", "negative", PROBES),
        "region": settings.flag("region", True),
        "arrows": settings.flag("arrows", True),
        "radial": settings.flag("radial", True),
        "eye": settings.numbers("eye", (20.0, 15.0)),
        "places": tuple(places),
    }
    settings.end()
    a, p, n = (_unit(cast(Surface, on), longitude, latitude) for longitude, latitude in places)
    return TripletShown(losses.create(name, **hyper), a, p, n, on, drawing)


def _unit(on: Surface, longitude: float, latitude: float) -> Tensor:
    angle, height = torch.deg2rad(torch.tensor((longitude, latitude), dtype=torch.float64))
    return on_circle(angle) if on == "circle" else on_sphere(angle, height)


def _draw_sphere(shown: TripletShown) -> Figure:
    from dmlcore.figures.spheres import draw_circle, draw_sphere

    options = dict(shown.drawing)
    places, eye = options.pop("places"), options.pop("eye")
    if shown.on == "circle":
        return draw_circle(shown.loss, *(place[0] for place in places), title="", **options)
    return draw_sphere(shown.loss, *places, eye=eye, title="", **options)


def _charges(given: Given) -> ChargesShown:
    """Return the state for settings in the format of the Charges page's URL; `step` is the displayed step."""
    settings = FigureSettings(given)
    name, hyper = settings.loss()
    law = Dynamics(
        loss=name,
        hyper=hyper,
        optimiser=settings.choice("optimiser", "sgd", OPTIMISERS),
        step_size=settings.number("rate", 0.05, 1e-4, 2.0),
        miner=settings.choice("miner", ALL, (ALL, *mining.on_distances())),
        side=settings.choice("side", "both", SIDES),
        normalise=settings.choice("normalise", "none", NORMALISATIONS),
    )
    spec = Spec(
        start=settings.choice("start", Spec.start, STARTS),
        classes=settings.whole("classes", Spec.classes, 2, MOST_CLASSES),
        per_class=settings.whole("per", Spec.per_class, 2, MOST_PER_CLASS),
        seed=settings.whole("seed", Spec.seed, 0, 2**31 - 1),
        law=law,
    )
    step = settings.whole("step", 0, 0, MOST_STEPS)
    settings.end()
    return ChargesShown(spec, step)


@lru_cache(maxsize=8)
def _simulation(spec: Spec) -> Simulation:
    return Simulation(spec)


def _draw_charges(shown: ChargesShown) -> Figure:
    from dmlcore.figures.charges import draw_charges

    return draw_charges(shown.simulation, shown.step, arrows=True)


def _transport(given: Given) -> TransportShown:
    """Return the state for settings in the format of the Transport page's URL; `map` must be the name of a built-in
    map.
    """
    settings = FigureSettings(given)
    pixels = MAPS[settings.choice("map", "figure", MAPS)]()
    shares_text = settings.text("prototypes", "1,0;0,1")
    shares = [FigureSettings({"prototypes": part}).numbers("prototypes", (0.0, 0.0)) for part in shares_text.split(";")]
    if any(min(r, b) < 0 or r + b > 1 for r, b in shares):
        raise ValueError(f"prototypes must be shares of red and blue that sum to at most 1, got {shares_text!r}")
    prototypes = np.rint(STEPS * np.array(shares)).astype(np.int64)
    mu = settings.number("mu", 0.2, 0.01, 1.0)
    epsilon = settings.number("epsilon", 5.0, 0.1, 450.0)
    settings.whole("sweeps", 100, 1, 400)
    settings.end()
    return TransportShown(pixels, prototypes, mu, epsilon)


def _draw_transport(shown: TransportShown) -> Figure:
    from dmlcore.figures.transports import draw_transport

    return draw_transport(shown.pixels, shown.prototypes, mu=shown.mu, epsilon=shown.epsilon)


def _study(given: Given) -> StudyShown:
    """Return the state for the setting `study`, the name of a study with shipped results."""
    settings = FigureSettings(given)
    name = settings.choice("study", "losses-omniglot", [n for n in studies.names() if studies.results_path(n).exists()])
    settings.end()
    return StudyShown(name)


def _draw_study(shown: StudyShown) -> Figure:
    from dmlcore.figures.study_bars import draw_bars

    return draw_bars(*bars_of(shown))


def studies_offered() -> list[str]:
    """Return the names of the studies that compare losses and have shipped results, as offered to a reader."""
    named = [name for name in studies.names() if studies.results_path(name).exists()]
    return [name for name in named if studies.read(name).things == "losses"]


def draw_studies_offered() -> Figure:
    """Draw all `studies_offered` in one figure, because a reader cannot switch between studies on paper."""
    from dmlcore.figures.study_bars import draw_studies

    return draw_studies({studies.read(name).title: bars_of(StudyShown(name)) for name in studies_offered()})


def bars_of(shown: StudyShown) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Return the test MAP@R of each variant by seed, and of each baseline as a mean over variants and seeds."""
    results = studies.load(shown.study)
    if results is None:
        raise ValueError(f"the study {shown.study} has no written results")
    values: dict[str, list[float]] = {}
    for run in studies.best_folds(results.runs):
        if run.variant != studies.PRETRAINING:
            values.setdefault(run.variant, []).append(run.scores["map_at_r"])
    levels = studies.levels(results.runs, "map_at_r")
    return values, {name: float(np.mean(list(level.values()))) for name, level in levels.items()}


STAGES: Mapping[str, FigureKind] = {
    "plane": FigureKind(TripletShown, _plane, _draw_plane),
    "sphere": FigureKind(TripletShown, _sphere, _draw_sphere),
    "charges": FigureKind(ChargesShown, _charges, _draw_charges),
    "transport": FigureKind(TransportShown, _transport, _draw_transport),
    "projections": FigureKind(ProjectionsShown, ProjectionsShown.read, draw_projections),
    "ensemble": FigureKind(EnsembleShown, EnsembleShown.read, draw_ensemble),
    "neighbours": FigureKind(NeighboursShown, NeighboursShown.read, draw_neighbours),
    "study": FigureKind(StudyShown, _study, _draw_study),
}
