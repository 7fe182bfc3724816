"""From a failure to its forces: what one step on one triplet would do to the ranks of its query.

The step is taken on the three embeddings themselves, x <- x - rate * gradient, all others staying: where the run puts
embeddings on the sphere, by the tangential part of the gradient alone and then back to the length that x had. Ranks are
recomputed over the whole gallery, exactly. A training step would move weights instead, hence every embedding.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from dmlcore.geometry.embedded_triplet import EmbeddedTriplet, PlaneForces, embed, forces_in_plane
from dmlcore.inspection.learned import Learned
from dmlcore.losses import TripletLoss

Floats = NDArray[np.float64]
UNIT = 1e-3  # how far a length may be from 1 for an embedding to lie on the sphere


@dataclass(frozen=True)
class Standing:
    """Where the right and the wrong neighbour stand in the list of the query: ranks from 1, and AP@R in 0..1."""

    right: int
    wrong: int
    average_precision: float


@dataclass(frozen=True, eq=False)
class Step:
    """One step of a loss on the triplet: its forces before, how far the points went (3,), the standing after."""

    forces: PlaneForces
    moved: Floats
    after: Standing


class Failure:
    """A query of a run with a right and a wrong neighbour, all rows of its `Learned`.

    on_sphere: whether the run normalises its embeddings; taken back if these three are no unit vectors, as those of an
    ensemble. Raises ValueError naming what does not fit: the query must be no gallery row, the neighbours rows that it
    searches, one of its class and one of another.
    """

    def __init__(self, found: Learned, query: int, right: int, wrong: int, *, on_sphere: bool) -> None:
        searched = found.is_gallery if found.is_gallery.any() else np.arange(len(found.labels)) != query
        if found.is_gallery[query]:
            raise ValueError("query is a sample of the gallery, which asks nothing")
        for name, row, same in (("right", right, True), ("wrong", wrong, False)):
            if not searched[row]:
                raise ValueError(f"{name} is not among the samples that the query searches")
            if (found.labels[row] == found.labels[query]) != same:
                raise ValueError(f"{name} must be of {'the class' if same else 'another class than'} of the query")
        self.query, self.right, self.wrong = query, right, wrong
        self.rows = np.flatnonzero(searched)
        self.points = found.embeddings[[query, right, wrong]].astype(np.float64)
        lengths = np.linalg.norm(self.points, axis=1)
        self.on_sphere = on_sphere and bool((np.abs(lengths - 1) < UNIT).all())
        self._gallery = torch.from_numpy(found.embeddings[self.rows].astype(np.float64))
        self._relevant = found.labels[self.rows] == found.labels[query]
        self._places = np.searchsorted(self.rows, [right, wrong])  # in the gallery

    @cached_property
    def triplet(self) -> EmbeddedTriplet:
        """The three embeddings in their plane."""
        return embed(*self.points)

    @cached_property
    def before(self) -> Standing:
        """The standing with the embeddings as they are."""
        return self.standings(self.points[None])[0]

    def steps(self, losses: list[TripletLoss], rate: float, *, length: float | None = None) -> list[Step]:
        """One step of each loss at `rate` >= 0; with `length`, each as far as moves its farthest point by so much.

        A loss without force moves nothing. Raises ValueError for a negative rate or length.
        """
        for name, value in (("rate", rate), ("length", length or 0.0)):
            if not value >= 0:
                raise ValueError(f"{name} must be at least 0, got {value!r}")
        found = [forces_in_plane(loss, self.triplet) for loss in losses]
        ends = np.stack([self._end(forces, rate, length) for forces in found])
        moved = np.linalg.norm(ends - self.points, axis=-1)
        return [Step(forces, far, after) for forces, far, after in zip(found, moved, self.standings(ends), strict=True)]

    def _end(self, forces: PlaneForces, rate: float, length: float | None) -> Floats:
        """Where the points (3, D) go."""
        whole = forces.tangential, forces.tangential_off
        move = self.triplet.lift_vectors(*(whole if self.on_sphere else (forces.in_plane, forces.off_plane)))
        farthest = float(np.linalg.norm(move, axis=1).max())
        if not np.isfinite(farthest) or farthest == 0:
            return self.points
        end = self.points + (rate if length is None else length / farthest) * move
        if not self.on_sphere:
            return end
        back = np.linalg.norm(self.points, axis=1) / np.linalg.norm(end, axis=1)
        return np.asarray(np.where(move.any(1)[:, None], end * back[:, None], self.points))

    def standings(self, points: Floats) -> list[Standing]:
        """The standing with the three points put at each of (K, 3, D), all others as they are.

        Distances are Euclidean in float64, ties go to the lower row: the order of `metrics.nearest`.
        """
        query, *neighbours = torch.from_numpy(np.ascontiguousarray(points)).unbind(1)
        distances = torch.cdist(query, self._gallery, compute_mode="donot_use_mm_for_euclid_dist")
        for place, moved in zip(self._places.tolist(), neighbours, strict=True):
            distances[:, place] = torch.linalg.vector_norm(query - moved, dim=-1)
        return [self._standing(row) for row in distances.numpy()]

    def _standing(self, distances: Floats) -> Standing:
        def rank(place: int) -> int:
            at = distances[place]
            return 1 + int((distances < at).sum()) + int((np.flatnonzero(distances == at) < place).sum())

        matches = int(self._relevant.sum())
        within = np.flatnonzero(distances <= np.partition(distances, matches - 1)[matches - 1])
        first = within[np.argsort(distances[within], kind="stable")][:matches]  # MAP@R looks at the first R
        relevant = self._relevant[first]
        precision = np.cumsum(relevant) / np.arange(1, matches + 1)
        right, wrong = (rank(int(place)) for place in self._places)
        return Standing(right, wrong, float(precision[relevant].sum() / matches))


def failures(found: Learned) -> NDArray[np.int64]:
    """Rows of the queries whose nearest neighbour is wrong, lowest AP@R first; of all with a match where none fails."""
    scored = ~np.isnan(found.average_precision) & ~found.is_gallery
    chosen = found.failures & scored
    rows = np.flatnonzero(chosen if chosen.any() else scored)
    return rows[np.argsort(found.average_precision[rows], kind="stable")]


def neighbours(found: Learned, query: int, *, right: bool) -> NDArray[np.int64]:
    """Rows that the query searches, of its class or of the others, nearest first (ties by row)."""
    searched = found.is_gallery if found.is_gallery.any() else np.arange(len(found.labels)) != query
    rows = np.flatnonzero(searched & ((found.labels == found.labels[query]) == right))
    gallery, point = (torch.from_numpy(found.embeddings[i].astype(np.float64)) for i in (rows, [query]))
    distances = torch.cdist(point, gallery, compute_mode="donot_use_mm_for_euclid_dist")[0].numpy()
    return rows[np.argsort(distances, kind="stable")]
