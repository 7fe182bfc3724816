"""Training runs that lessons play: recorded once by `python -m docs.make_recordings`, shipped as rows of JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlcore.lessons.settings import FigureSettings
from dmlcore.presets import RECORDINGS
from dmlcore.typing import Floats, Ints

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UNIT = 1000  # of a stored coordinate in the unit disc


@dataclass(frozen=True)
class ProjectionFrame:
    """A moment of chance-constrained programming in the plane.

    points (n, 2): samples; labels (n,); proxies (classes, P, 2), all in the unit disc; title: what happens here, or "".
    """

    step: int
    projection: int
    points: Floats
    labels: Ints
    proxies: Floats
    map_at_r: float
    title: str

    @property
    def apart(self) -> float:
        """The largest distance between two proxies of a class, the mean over the classes."""
        pairs = self.proxies[:, :, None] - self.proxies[:, None]
        return float(np.linalg.norm(pairs, axis=-1).max((1, 2)).mean())

    @property
    def covering(self) -> float:
        """How far the sample of a class that is worst off lies from its nearest proxy, the mean over the classes."""
        radii = []
        for label, own in enumerate(self.proxies):
            to_own = np.linalg.norm(self.points[self.labels == label][:, None] - own, axis=-1)
            radii.append(to_own.min(1).max())
        return float(np.mean(radii))


@dataclass(frozen=True)
class EnsembleFrame:
    """A step of an ensemble of losses: names, weights (M,) and the losses (M,) over the mean of all steps so far."""

    step: int
    names: tuple[str, ...]
    weights: Floats
    relative: Floats


@dataclass(frozen=True)
class NeighboursFrame:
    """One query of a conditioned embedding, some of whose neighbours were exchanged for samples of another class.

    points (n, 2): the others as they are, labels (n,); query (2,) of class `label`, all in the unit disc; moved: how
    far from where its own neighbours put it.
    """

    exchanged: int
    neighbours: int
    points: Floats
    labels: Ints
    query: Floats
    label: int
    moved: float

    @property
    def nearest(self) -> int:
        """The class whose mean is nearest to the query."""
        classes = np.unique(self.labels)
        means = np.stack([self.points[self.labels == label].mean(0) for label in classes])
        return int(classes[np.linalg.norm(means - self.query, axis=1).argmin()])


@lru_cache(maxsize=1)
def exchanged() -> tuple[NeighboursFrame, ...]:
    """Ten digits; a query's neighbours are exchanged one by one, the furthest first."""
    head, *rows = _rows("neighbours")
    points, labels = np.array(head["points"]).reshape(-1, 2) / UNIT, np.array(head["labels"])
    queries = np.array([row["query"] for row in rows]) / UNIT
    return tuple(
        NeighboursFrame(
            exchanged=row["exchanged"],
            neighbours=head["neighbours"],
            points=points,
            labels=labels,
            query=query,
            label=head["label"],
            moved=float(np.linalg.norm(query - queries[0])),
        )
        for row, query in zip(rows, queries, strict=True)
    )


@lru_cache(maxsize=1)
def projections() -> tuple[ProjectionFrame, ...]:
    """Ten digits, four proxies of each: every 25th step, and twice where a projection ends."""
    head, *rows = _rows("projections")
    labels = np.array(head["labels"])
    return tuple(
        ProjectionFrame(
            step=row["step"],
            projection=row["projection"],
            points=np.array(row["points"]).reshape(-1, 2) / UNIT,
            labels=labels,
            proxies=np.array(row["proxies"]).reshape(head["classes"], -1, 2) / UNIT,
            map_at_r=row["map_at_r"],
            title=row["title"],
        )
        for row in rows
    )


@lru_cache(maxsize=1)
def ensemble() -> tuple[EnsembleFrame, ...]:
    """WEL on Omniglot with the four losses of its source: every step."""
    head, *rows = _rows("ensemble")
    names = tuple(head["names"])
    losses = np.array([row["losses"] for row in rows])
    means = losses.cumsum(0) / np.arange(1, len(rows) + 1)[:, None]
    return tuple(
        EnsembleFrame(row["step"], names, np.array(row["weights"]), relative)
        for row, relative in zip(rows, losses / means, strict=True)
    )


def _rows(name: str) -> list[Any]:
    return [json.loads(line) for line in (RECORDINGS / f"{name}.jsonl").read_text("utf-8").splitlines()]


@dataclass(frozen=True)
class ProjectionsShown:
    """A frame, counted from 0, of the recorded projections of chance-constrained programming."""

    frame: int

    @property
    def now(self) -> ProjectionFrame:
        """The frame itself."""
        return projections()[self.frame]


@dataclass(frozen=True)
class EnsembleShown:
    """A frame, counted from 0, of the recorded ensemble of losses."""

    frame: int

    @property
    def now(self) -> EnsembleFrame:
        """The frame itself."""
        return ensemble()[self.frame]


@dataclass(frozen=True)
class NeighboursShown:
    """A frame, counted from 0, of the recorded exchange of neighbours."""

    frame: int

    @property
    def now(self) -> NeighboursFrame:
        """The frame itself."""
        return exchanged()[self.frame]


def read_neighbours(given: Mapping[str, str]) -> NeighboursShown:
    """`step` is how many neighbours are exchanged."""
    return NeighboursShown(_frame(given, len(exchanged())))


def read_projections(given: Mapping[str, str]) -> ProjectionsShown:
    """`step` is the number of the frame, as two frames share a step where a projection ends."""
    return ProjectionsShown(_frame(given, len(projections())))


def read_ensemble(given: Mapping[str, str]) -> EnsembleShown:
    """`step` is the number of the frame, one less than the step of the training."""
    return EnsembleShown(_frame(given, len(ensemble())))


def _frame(given: Mapping[str, str], count: int) -> int:
    settings = FigureSettings(given)
    frame = settings.whole("step", 0, 0, count - 1)
    settings.end()
    return frame


def draw_projections(shown: ProjectionsShown) -> Figure:
    """The plane at this frame."""
    from dmlcore.figures.recordings import draw_projection

    now = shown.now
    return draw_projection(
        now.points,
        now.labels,
        now.proxies,
        words=f"Projection {now.projection}, step {now.step}",
        event=now.title,
        measured=f"MAP@R {100 * now.map_at_r:.0f} %   ◆ proxies",
    )


def draw_ensemble(shown: EnsembleShown) -> Figure:
    """The curves of all steps, with a line at this one."""
    from dmlcore.figures import recordings as figures

    frames = ensemble()
    weights, relative = (np.array([getattr(frame, name) for frame in frames]) for name in ("weights", "relative"))
    return figures.draw_ensemble(shown.now.names, [frame.step for frame in frames], weights, relative, shown.now.step)


def draw_neighbours(shown: NeighboursShown) -> Figure:
    """The plane with this many neighbours exchanged."""
    from dmlcore.figures.recordings import draw_projection

    now = shown.now
    query = np.full((now.label + 1, 1, 2), np.nan)  # of its class alone
    query[now.label, 0] = now.query
    everyone = np.concatenate([query, np.full((int(now.labels.max()) - now.label, 1, 2), np.nan)])
    return draw_projection(
        now.points,
        now.labels,
        everyone,
        words=f"{now.exchanged} of {now.neighbours} neighbours exchanged",
        event="",
        measured=f"moved by {now.moved:.2f}   ◆ the query",
    )
