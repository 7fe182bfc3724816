"""Effect of one gradient step on a triplet of embeddings: ranks of the query's neighbours before and after.

The step moves only the three embeddings, x <- x - rate * gradient; all other embeddings stay fixed. If the run
normalises embeddings, only the tangential component of the gradient acts, and x is scaled back to its previous length.
Ranks are recomputed exactly over the whole gallery. A training step would change the weights instead, and thereby every
embedding; see `true_step`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dmlcore.geometry.embedded_triplet import EmbeddedTriplet, PlaneForces, embed, forces_in_plane
from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.losses import TripletLoss
from dmlcore.typing import Array, Bools, Floats, Ints

DIRECT = "donot_use_mm_for_euclid_dist"
HELD = 2**26  # largest number of values that are converted to double precision (512 MB)
PART = 2**17  # number of embeddings that are compared with a query at a time
UNIT = 1e-3  # largest deviation of a norm from 1 for an embedding to count as a unit vector


@dataclass(frozen=True)
class NeighbourRanks:
    """Ranks (from 1) of a correct and an incorrect neighbour of a query, and AP@R of the query (0..1)."""

    right: int
    wrong: int
    average_precision: float

    def to_json(self) -> dict[str, Any]:
        """Return the ranks by the names of stored results: right, wrong and ap."""
        return {"right": self.right, "wrong": self.wrong, "ap": self.average_precision}


@dataclass(frozen=True, eq=False)
class Step:
    """Result of one gradient step with a loss on a triplet.

    Args:
        forces: Forces of the loss on the three points before the step.
        ends: Points (3, D) after the step.
        moved: Distances (3,) by which the points moved.
        after: Ranks after the step.
    """

    forces: PlaneForces
    ends: Floats
    moved: Floats
    after: NeighbourRanks


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Embeddings without neighbour lists, sufficient for `RetrievalFailure`."""

    embeddings: NDArray[np.floating]  # (n, D)
    labels: Ints  # (n,)
    is_gallery: Bools  # (n,)


Embedded = TestNeighbours | Embeddings


class RetrievalFailure:
    """Query with one correct and one incorrect neighbour among the searched samples.

    Args:
        learned: Embeddings with their labels.
        query: Row of the query, which must not be a gallery row.
        right: Row of a searched sample of the query's class.
        wrong: Row of a searched sample of another class.
        on_sphere: True if the run normalises its embeddings. Ignored if the three embeddings are not unit vectors, as
            for an ensemble.

    Raises:
        ValueError: A row violates these conditions; the message names it.
    """

    def __init__(self, learned: Embedded, query: int, right: int, wrong: int, *, on_sphere: bool) -> None:
        if learned.is_gallery[query]:
            raise ValueError("query is a gallery sample, which is never a query")
        searched, same = _searched(learned, query), learned.labels == learned.labels[query]
        for name, row, wanted in (("right", right, True), ("wrong", wrong, False)):
            if not searched[row]:
                raise ValueError(f"{name} is not among the samples that the query searches")
            if same[row] != wanted:
                raise ValueError(
                    f"{name} must be of {'the class' if wanted else 'another class than that'} of the query"
                )
        self.query, self.right, self.wrong = query, right, wrong
        self._all = to_double(learned.embeddings)
        self._left_out = torch.from_numpy(~searched)
        self._relevant = same & searched
        self.points = self._all[[query, right, wrong]].astype(np.float64)
        self.searched, self.matches = int(searched.sum()), int(self._relevant.sum())
        self.on_sphere = on_sphere and bool((np.abs(np.linalg.norm(self.points, axis=1) - 1) < UNIT).all())

    @cached_property
    def triplet(self) -> EmbeddedTriplet:
        """Triplet of the three embeddings, with coordinates in the plane through them."""
        return embed(*self.points)

    @cached_property
    def before(self) -> NeighbourRanks:
        """Ranks before any step is taken."""
        return self.ranks_at(self.points[None])[0]

    def moved_to(self, at: Floats) -> EmbeddedTriplet:
        """Return the triplet with its points moved to coordinates `at` (3, 2) of its plane."""
        return self.triplet if np.array_equal(at, self.triplet.points) else replace(self.triplet, points=at)

    def steps(
        self,
        losses: Sequence[TripletLoss],
        rate: float,
        *,
        length: float | None = None,
        start: EmbeddedTriplet | None = None,
    ) -> list[Step]:
        """Compute one gradient step with each loss, from the same start.

        A loss with zero gradient leaves all points in place.

        Args:
            losses: Losses to compare.
            rate: Step size, at least 0.
            length: If given, each step is scaled so that the point that moves farthest moves by this length, and `rate`
                is ignored.
            start: Triplet to start from, as `moved_to` returns it; by default the embeddings of the run.

        Raises:
            ValueError: `rate` or `length` is negative.
        """
        for name, value in (("rate", rate), ("length", length or 0.0)):
            if not value >= 0:
                raise ValueError(f"{name} must be at least 0, got {value!r}")
        start = start or self.triplet
        points = self.at(start)
        forces = [forces_in_plane(loss, start) for loss in losses]
        ends = np.stack([self._end(start, points, force, rate, length) for force in forces])
        moved = np.linalg.norm(ends - points, axis=-1)
        return [Step(*row) for row in zip(forces, ends, moved, self.ranks_at(ends), strict=True)]

    def at(self, triplet: EmbeddedTriplet) -> Floats:
        """Return the embeddings (3, D) of a triplet given by coordinates in the plane of `self.triplet`."""
        return self.points if triplet is self.triplet else triplet.lift_points(triplet.points)

    def _end(
        self, start: EmbeddedTriplet, points: Floats, forces: PlaneForces, rate: float, length: float | None
    ) -> Floats:
        """Return the points (3, D) after a step from `points` with the given forces."""
        tangential = forces.tangential, forces.tangential_off
        move = start.lift_vectors(*(tangential if self.on_sphere else (forces.in_plane, forces.off_plane)))
        farthest = float(np.linalg.norm(move, axis=1).max())
        if not np.isfinite(farthest) or farthest == 0:
            return points
        end = points + (rate if length is None else length / farthest) * move
        if not self.on_sphere:
            return end
        lengths, new = np.linalg.norm(points, axis=1), np.linalg.norm(end, axis=1)
        moves = np.any(move, axis=1, keepdims=True) & (lengths > 0)[:, None]
        return np.asarray(np.where(moves, end * (lengths / np.where(new > 0, new, 1.0))[:, None], points))

    def ranks_at(self, points: Floats) -> list[NeighbourRanks]:
        """Return the ranks for K alternative positions of the three points, while all other embeddings stay fixed.

        Distances are Euclidean in float64; ties are ordered by row, as in `metrics.nearest`.

        Args:
            points: Positions (K, 3, D) of query, correct neighbour and incorrect neighbour.
        """
        query, *neighbours = torch.from_numpy(np.ascontiguousarray(points)).unbind(1)
        parts = (torch.from_numpy(part.astype(np.float64, copy=False)) for part in _parts(self._all))
        distances = torch.cat([torch.cdist(query, part, compute_mode=DIRECT) for part in parts], dim=1)
        distances[:, self._left_out] = torch.inf
        for row, moved in zip((self.right, self.wrong), neighbours, strict=True):
            distances[:, row] = torch.linalg.vector_norm(query - moved, dim=-1)
        return [self._ranks(row) for row in distances.numpy()]

    def _ranks(self, distances: Floats) -> NeighbourRanks:
        def rank(row: int) -> int:
            at = distances[row]
            return 1 + int((distances < at).sum()) + int((np.flatnonzero(distances == at) < row).sum())

        r = self.matches
        within = np.flatnonzero(distances <= np.partition(distances, r - 1)[r - 1])
        first = within[np.argsort(distances[within], kind="stable")][:r]  # AP@R depends on the first R neighbours only
        relevant = self._relevant[first]
        precision = np.cumsum(relevant) / np.arange(1, r + 1)
        return NeighbourRanks(rank(self.right), rank(self.wrong), float(precision[relevant].sum() / r))


def failures(learned: TestNeighbours) -> Ints:
    """Return the rows of the queries with a nearest neighbour of another class, lowest AP@R first.

    If no query fails, all queries whose class has another sample are returned.
    """
    scored = ~np.isnan(learned.average_precision) & learned.queries
    chosen = learned.failures & scored
    rows = np.flatnonzero(chosen if chosen.any() else scored)
    return rows[np.argsort(learned.average_precision[rows], kind="stable")]


def neighbours(learned: Embedded, query: int, *, right: bool) -> Ints:
    """Return the searched rows of the query's class, or of all other classes, nearest to the query first.

    Args:
        learned: Embeddings with their labels.
        query: Row of the query.
        right: True for rows of the query's class, False for rows of other classes.
    """
    rows = np.flatnonzero(_searched(learned, query) & ((learned.labels == learned.labels[query]) == right))
    point = torch.from_numpy(learned.embeddings[[query]].astype(np.float64))
    parts = (torch.from_numpy(learned.embeddings[part].astype(np.float64)) for part in _parts(rows))
    distances = np.concatenate([torch.cdist(point, part, compute_mode=DIRECT)[0].numpy() for part in parts] or [rows])
    return rows[np.argsort(distances, kind="stable")]


def to_double(embeddings: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return embeddings (n, D) in double precision, or unchanged if they have more than HELD values."""
    return embeddings.astype(np.float64, copy=False) if embeddings.size <= HELD else embeddings


def _parts(values: Array) -> list[Array]:
    return [values[start : start + PART] for start in range(0, len(values), PART)]


def _searched(learned: Embedded, query: int) -> Bools:
    """Return a boolean mask (n,) of the rows that the query searches: the gallery, or all rows except `query`."""
    others: Bools = np.arange(len(learned.labels)) != query
    return learned.is_gallery if learned.is_gallery.any() else others
