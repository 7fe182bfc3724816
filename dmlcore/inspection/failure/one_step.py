"""From a failure to its forces: what one step on one triplet would do to the ranks of its query.

The step is taken on the three embeddings themselves, x <- x - rate * gradient, all others staying: where the run puts
embeddings on the sphere, by the tangential part of the gradient alone and then back to the length that x had. Ranks are
recomputed over the whole gallery, exactly. A training step would move weights instead, hence every embedding:
see `true_step`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from dmlcore.geometry.embedded_triplet import EmbeddedTriplet, PlaneForces, embed, forces_in_plane
from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.losses import TripletLoss
from dmlcore.typing import Array, Bools, Floats, Ints

DIRECT = "donot_use_mm_for_euclid_dist"
HELD = 2**26  # numbers that are held in double precision: 512 MB
PART = 2**17  # embeddings that are compared at once
UNIT = 1e-3  # how far a length may be from 1 for an embedding to lie on the sphere


@dataclass(frozen=True)
class NeighbourRanks:
    """Where the right and the wrong neighbour stand in the list of the query: ranks from 1, and AP@R in 0..1."""

    right: int
    wrong: int
    average_precision: float


@dataclass(frozen=True, eq=False)
class Step:
    """One step of a loss on the triplet: its forces before, where the points (3, D) end, the standing after."""

    forces: PlaneForces
    ends: Floats
    moved: Floats  # (3,) how far the points went
    after: NeighbourRanks


class Embedded(Protocol):
    """Embeddings (n, D) with labels (n,); is_gallery (n,) where queries search a gallery of its own. As `Learned`."""

    @property
    def embeddings(self) -> NDArray[np.floating]: ...
    @property
    def labels(self) -> Ints: ...
    @property
    def is_gallery(self) -> Bools: ...


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Embeddings without more: what a `Failure` needs of them."""

    embeddings: NDArray[np.floating]  # (n, D)
    labels: Ints  # (n,)
    is_gallery: Bools  # (n,)


class RetrievalFailure:
    """A query of a run with a right and a wrong neighbour, all rows of its embeddings.

    on_sphere: whether the run normalises its embeddings; taken back if these three are no unit vectors, as those of an
    ensemble. Raises ValueError naming what does not fit: the query must be no gallery row, the neighbours rows that it
    searches, one of its class and one of another.
    """

    def __init__(self, learned: Embedded, query: int, right: int, wrong: int, *, on_sphere: bool) -> None:
        if learned.is_gallery[query]:
            raise ValueError("query is a sample of the gallery, which asks nothing")
        searched, same = _searched(learned, query), learned.labels == learned.labels[query]
        for name, row, wanted in (("right", right, True), ("wrong", wrong, False)):
            if not searched[row]:
                raise ValueError(f"{name} is not among the samples that the query searches")
            if same[row] != wanted:
                raise ValueError(
                    f"{name} must be of {'the class' if wanted else 'another class than that'} of the query"
                )
        self.query, self.right, self.wrong = query, right, wrong
        self._all = held(learned.embeddings)
        self._left_out = torch.from_numpy(~searched)
        self._relevant = same & searched
        self.points = self._all[[query, right, wrong]].astype(np.float64)
        self.searched, self.matches = int(searched.sum()), int(self._relevant.sum())
        self.on_sphere = on_sphere and bool((np.abs(np.linalg.norm(self.points, axis=1) - 1) < UNIT).all())

    @cached_property
    def triplet(self) -> EmbeddedTriplet:
        """The three embeddings in their plane."""
        return embed(*self.points)

    @cached_property
    def before(self) -> NeighbourRanks:
        """The standing with the embeddings as they are."""
        return self.standings(self.points[None])[0]

    def moved_to(self, at: Floats) -> EmbeddedTriplet:
        """The triplet with its points at other places (3, 2) of its plane; itself where they are its own."""
        return self.triplet if np.array_equal(at, self.triplet.points) else replace(self.triplet, points=at)

    def steps(
        self,
        losses: Sequence[TripletLoss],
        rate: float,
        *,
        length: float | None = None,
        start: EmbeddedTriplet | None = None,
    ) -> list[Step]:
        """One step of each loss at `rate` >= 0; with `length`, each as far as moves its farthest point by so much.

        start: of `moved_to`, in place of the embeddings as they are. A loss without force moves nothing. Raises
        ValueError for a negative rate or length.
        """
        for name, value in (("rate", rate), ("length", length or 0.0)):
            if not value >= 0:
                raise ValueError(f"{name} must be at least 0, got {value!r}")
        start = start or self.triplet
        points = self.at(start)
        forces = [forces_in_plane(loss, start) for loss in losses]
        ends = np.stack([self._end(start, points, force, rate, length) for force in forces])
        moved = np.linalg.norm(ends - points, axis=-1)
        return [Step(*row) for row in zip(forces, ends, moved, self.standings(ends), strict=True)]

    def at(self, triplet: EmbeddedTriplet) -> Floats:
        """The embeddings (3, D) of a triplet of this plane."""
        return self.points if triplet is self.triplet else triplet.lift_points(triplet.points)

    def _end(
        self, start: EmbeddedTriplet, points: Floats, forces: PlaneForces, rate: float, length: float | None
    ) -> Floats:
        """Where the points (3, D) go."""
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

    def standings(self, points: Floats) -> list[NeighbourRanks]:
        """The standing with the three points put at each of (K, 3, D), all others as they are.

        Distances are Euclidean in float64, ties go to the lower row: the order of `metrics.nearest`.
        """
        query, *neighbours = torch.from_numpy(np.ascontiguousarray(points)).unbind(1)
        parts = (torch.from_numpy(part.astype(np.float64, copy=False)) for part in _parts(self._all))
        distances = torch.cat([torch.cdist(query, part, compute_mode=DIRECT) for part in parts], dim=1)
        distances[:, self._left_out] = torch.inf
        for row, moved in zip((self.right, self.wrong), neighbours, strict=True):
            distances[:, row] = torch.linalg.vector_norm(query - moved, dim=-1)
        return [self._standing(row) for row in distances.numpy()]

    def _standing(self, distances: Floats) -> NeighbourRanks:
        def rank(row: int) -> int:
            at = distances[row]
            return 1 + int((distances < at).sum()) + int((np.flatnonzero(distances == at) < row).sum())

        r = self.matches
        within = np.flatnonzero(distances <= np.partition(distances, r - 1)[r - 1])
        first = within[np.argsort(distances[within], kind="stable")][:r]  # MAP@R looks at the first R
        relevant = self._relevant[first]
        precision = np.cumsum(relevant) / np.arange(1, r + 1)
        return NeighbourRanks(rank(self.right), rank(self.wrong), float(precision[relevant].sum() / r))


def failures(learned: TestNeighbours) -> Ints:
    """Rows of the queries whose nearest neighbour is wrong, lowest AP@R first; of all with a match where none fails."""
    scored = ~np.isnan(learned.average_precision) & learned.queries
    chosen = learned.failures & scored
    rows = np.flatnonzero(chosen if chosen.any() else scored)
    return rows[np.argsort(learned.average_precision[rows], kind="stable")]


def neighbours(learned: Embedded, query: int, *, right: bool) -> Ints:
    """Rows that the query searches, of its class or of the others, nearest first (ties by row)."""
    rows = np.flatnonzero(_searched(learned, query) & ((learned.labels == learned.labels[query]) == right))
    point = torch.from_numpy(learned.embeddings[[query]].astype(np.float64))
    parts = (torch.from_numpy(learned.embeddings[part].astype(np.float64)) for part in _parts(rows))
    distances = np.concatenate([torch.cdist(point, part, compute_mode=DIRECT)[0].numpy() for part in parts] or [rows])
    return rows[np.argsort(distances, kind="stable")]


def held(embeddings: NDArray[np.floating]) -> NDArray[np.floating]:
    """Embeddings (n, D) in double precision, or as they are, perhaps memory-mapped, where that were more than HELD."""
    return embeddings.astype(np.float64, copy=False) if embeddings.size <= HELD else embeddings


def _parts(values: Array) -> list[Array]:
    return [values[start : start + PART] for start in range(0, len(values), PART)]


def _searched(learned: Embedded, query: int) -> Bools:
    """(n,) whether each row is among what the query searches: the gallery, or all but itself."""
    others: Bools = np.arange(len(learned.labels)) != query
    return learned.is_gallery if learned.is_gallery.any() else others
