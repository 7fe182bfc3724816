"""Training runs that lessons play back: recorded by `python -m docs.make_recordings`, shipped as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import numpy as np

from dmlcore.lessons.settings import FigureSettings
from dmlcore.presets import RECORDINGS
from dmlcore.typing import Floats, Ints

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UNIT = 1000  # number of stored units per radius of the unit disc
Frame = TypeVar("Frame")


@dataclass(frozen=True)
class ProjectionFrame:
    """One frame of a recorded training run with chance-constrained programming and embeddings in the plane.

    Attributes:
        step: Training step.
        projection: Number of the current projection, from 1.
        points: Samples in the unit disc, shape (n, 2).
        labels: Classes of the samples, shape (n,).
        proxies: Proxies in the unit disc, shape (classes, P, 2).
        map_at_r: MAP@R in 0..1.
        title: Event in this frame, or "".
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
        """Largest distance between two proxies of a class, averaged over the classes."""
        pairs = self.proxies[:, :, None] - self.proxies[:, None]
        return float(np.linalg.norm(pairs, axis=-1).max((1, 2)).mean())

    @property
    def covering(self) -> float:
        """Largest distance of a sample from the nearest proxy of its class, averaged over the classes."""
        radii = []
        for label, own in enumerate(self.proxies):
            to_own = np.linalg.norm(self.points[self.labels == label][:, None] - own, axis=-1)
            radii.append(to_own.min(1).max())
        return float(np.mean(radii))


@dataclass(frozen=True)
class EnsembleFrame:
    """One training step of an ensemble of M losses.

    `weights` (M,) are the learned weights; `relative` (M,) is each loss divided by the mean of its values so far.
    """

    step: int
    names: tuple[str, ...]
    weights: Floats
    relative: Floats


@dataclass(frozen=True)
class NeighboursFrame:
    """Frame with a query of a conditioned embedding, some of whose neighbours are exchanged for those of another class.

    Attributes:
        exchanged: Number of exchanged neighbours.
        neighbours: Number of neighbours of the query.
        points: The other samples, which do not move, in the unit disc, shape (n, 2).
        labels: Classes of these samples, shape (n,).
        query: Position of the query, shape (2,).
        label: Class of the query.
        moved: Distance of the query from its position with the original neighbours.
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
        """Class whose mean is nearest to the query."""
        classes = np.unique(self.labels)
        means = np.stack([self.points[self.labels == label].mean(0) for label in classes])
        return int(classes[np.linalg.norm(means - self.query, axis=1).argmin()])


@lru_cache(maxsize=1)
def exchange_frames() -> tuple[NeighboursFrame, ...]:
    """Return frames in which a query's neighbours are replaced one by one with those of another class, furthest first.

    The samples are from ten digit classes.
    """
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
    """Return the frames of the recorded run on ten digit classes with four proxies each.

    There is one frame for every 25th step, and two at the end of each projection.
    """
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
    """Return all steps of an ensemble with learned weights (WEL) on Omniglot, with the four losses of the WEL paper."""
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
class Recorded(Generic[Frame]):
    """State of a recording: index of a frame, from 0.

    The index is not the training step, because two frames share a training step at the end of a projection.
    """

    frame: int

    @staticmethod
    def frames() -> tuple[Frame, ...]:
        """Return all frames of the recording."""
        raise NotImplementedError

    @property
    def now(self) -> Frame:
        """Data of the current frame."""
        return self.frames()[self.frame]

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Self:
        """Return the state for the setting `step`, the index of a frame. Raises ValueError."""
        settings = FigureSettings(given)
        frame = settings.whole("step", 0, 0, len(cls.frames()) - 1)
        settings.end()
        return cls(frame)


class ProjectionsShown(Recorded[ProjectionFrame]):
    """State of the recorded projections of chance-constrained programming."""

    frames = staticmethod(projections)


class EnsembleShown(Recorded[EnsembleFrame]):
    """State of the recorded ensemble of losses."""

    frames = staticmethod(ensemble)


class NeighboursShown(Recorded[NeighboursFrame]):
    """State of the recorded exchange of neighbours; the index of a frame is the number of exchanged neighbours."""

    frames = staticmethod(exchange_frames)


def draw_projections(shown: ProjectionsShown) -> Figure:
    """Draw the samples and proxies of the current frame in the plane."""
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
    """Draw the curves of weights and relative losses over all steps, with a line at the current step."""
    from dmlcore.figures import recordings as figures

    frames = ensemble()
    weights, relative = (np.array([getattr(frame, name) for frame in frames]) for name in ("weights", "relative"))
    return figures.draw_ensemble(shown.now.names, [frame.step for frame in frames], weights, relative, shown.now.step)


def draw_neighbours(shown: NeighboursShown) -> Figure:
    """Draw the samples and the query of the current frame in the plane."""
    from dmlcore.figures.recordings import draw_projection

    now = shown.now
    query = np.full((now.label + 1, 1, 2), np.nan)  # drawn as the only proxy of its class
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
