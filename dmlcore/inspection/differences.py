"""Difference between two evaluations: queries that lost or gained a nearest neighbour of their own class.

The evaluations are those of two checkpoints of a run, or of two runs, on the same test samples (`comparison.compare`).
Queries with a nearest neighbour that changes from correct to incorrect correspond to the forgetting events of Toneva et
al. (2019), which are defined for classification of training samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dmlcore.inspection.comparison import Comparison, compare
from dmlcore.inspection.duplicates import find_suspects
from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.typing import Bools, Floats, Ints

Kind = Literal["lost", "gained", "worse", "better"]
BEFORE, AFTER = 0, 1
AT_LEAST = 0.5  # share of the views that must suggest the same other class for a sample to be reported


@dataclass(frozen=True, eq=False)
class Difference:
    """Queries of two evaluations, before and after a change.

    Only queries whose class has another sample are included. Arrays (n,) are in the query order of `comparison`.
    """

    comparison: Comparison

    @property
    def change(self) -> Floats:
        """Change of AP@R (n,), after minus before, in -1..1; the mean is the change of MAP@R."""
        before, after = self.comparison.average_precision
        change: Floats = after - before
        return change

    @property
    def indices(self) -> Ints:
        """Sample indices (n,) of the queries in the data set."""
        indices: Ints = self.comparison.learned[BEFORE].indices[self.comparison.rows[BEFORE]]
        return indices

    @property
    def lost(self) -> Bools:
        """Boolean mask (n,), True where the nearest neighbour had the class of the query before, but not after."""
        before, after = self.comparison.right
        flipped: Bools = before & ~after
        return flipped

    @property
    def gained(self) -> Bools:
        """Boolean mask (n,), True where the nearest neighbour has the class of the query after, but not before."""
        before, after = self.comparison.right
        flipped: Bools = ~before & after
        return flipped

    def queries(self, kind: Kind) -> Ints:
        """Return the queries of one kind, largest change of AP@R first.

        Args:
            kind: "lost" or "gained" selects queries with a nearest neighbour that became incorrect or correct (of the
                query's class); "worse" or "better" selects all queries whose AP@R fell or rose.

        Returns:
            Query positions (m,) in 0..n-1.
        """
        change = self.change
        chosen = {"lost": self.lost, "gained": self.gained, "worse": change < 0, "better": change > 0}[kind]
        rows = np.flatnonzero(chosen)
        fall = change[rows] if kind in ("lost", "worse") else -change[rows]
        return rows[np.lexsort((rows, fall))]

    def neighbour_overlap(self, k: int) -> Floats:
        """Return, for each query, the share of its k nearest neighbours before that are among the k nearest after.

        If fewer than k neighbours are stored, all stored ones are compared.

        Returns:
            Shares (n,) in 0..1.
        """
        sides = []
        for learned, rows in zip(self.comparison.learned, self.comparison.rows, strict=True):
            sides.append(learned.indices[learned.neighbours[rows, :k]])
        before, after = sides
        shares: Floats = (before[:, :, None] == after[:, None, :]).any(axis=2).mean(axis=1)
        return shares


def difference(before: TestNeighbours, after: TestNeighbours) -> Difference:
    """Align two evaluations of the same test samples.

    Raises:
        comparison.Incomparable: The test samples differ.
    """
    return Difference(compare((before, after)))


@dataclass(frozen=True, eq=False)
class Turnover:
    """Numbers of queries that flipped between successive snapshots.

    A query flips if its nearest neighbour changes from correct (of the query's class) to incorrect, or vice versa.

    Args:
        gained: Number (S - 1,) of queries that became correct from one snapshot to the next.
        lost: Number (S - 1,) of queries that became incorrect.
        right: R@1 (S,) at each snapshot, the share of queries with a correct nearest neighbour.
        forgotten: Number of times (n,) that each query became incorrect.
    """

    gained: Ints
    lost: Ints
    right: Floats
    forgotten: Ints


def turnover(snapshots: Sequence[TestNeighbours]) -> Turnover:
    """Count the queries that flip between two or more successive snapshots.

    Raises:
        comparison.Incomparable: The snapshots were not tested on the same samples.
    """
    right = compare(snapshots).right
    lost, gained = right[:-1] & ~right[1:], ~right[:-1] & right[1:]
    return Turnover(
        gained=gained.sum(axis=1),
        lost=lost.sum(axis=1),
        right=right.mean(axis=1),
        forgotten=lost.sum(axis=0),
    )


@dataclass(frozen=True, eq=False)
class Doubted:
    """Samples that may be mislabelled, according to several embeddings (views) of them.

    Args:
        indices: Sample indices (m,) in the data set.
        label: Class (m,) that most views suggest instead of the given one.
        views: Number (m,) of views that suggest this class.
        votes: Share (m,) of a sample's neighbours that belong to this class, averaged over those views.
        asked: Number of views that were compared.
    """

    indices: Ints
    label: Ints
    views: Ints
    votes: Floats
    asked: int


def find_label_errors(views: Sequence[TestNeighbours]) -> Doubted:
    """Return samples whose neighbours suggest the same other class in several embeddings: possible label errors.

    Candidates in each view come from `duplicates.find_suspects` (edited nearest neighbours). A sample is reported if at
    least a share AT_LEAST of the views suggests the same class, because a single confused network is weak evidence.
    Samples are sorted by the number of views, then by the mean share of votes, highest first.

    Args:
        views: Neighbours of the same samples in different embeddings.

    Raises:
        ValueError: There are no views.

    Reference:
        Wilson (1972); for learned embeddings Bahri, Jiang & Gupta (2020), Deep k-NN for noisy labels.
    """
    if not views:
        raise ValueError("views must be one or more embeddings")
    counts: dict[tuple[int, int], list[float]] = {}
    for learned in views:
        doubts = find_suspects(learned)
        for index, label, votes in zip(learned.indices[doubts.rows], doubts.label, doubts.votes, strict=True):
            counts.setdefault((int(index), int(label)), []).append(float(votes) / doubts.asked)
    kept = [(key, votes) for key, votes in counts.items() if len(votes) >= AT_LEAST * len(views)]
    kept.sort(key=lambda item: (-len(item[1]), -float(np.mean(item[1])), item[0]))
    return Doubted(
        indices=np.array([key[0] for key, _ in kept], np.int64),
        label=np.array([key[1] for key, _ in kept], np.int64),
        views=np.array([len(votes) for _, votes in kept], np.int64),
        votes=np.array([np.mean(votes) for _, votes in kept], np.float64),
        asked=len(views),
    )
