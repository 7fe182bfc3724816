"""A retrieval difference: which queries found the right neighbour before and no longer do, or do only now.

Before and after are two checkpoints of a run, or two runs, on the same test samples (`comparison.compare`). Queries
that were right and are wrong again later are the forgetting events of Toneva et al. 2019 (example forgetting), asked of
retrieval on test samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dmlcore.inspection.comparison import Comparison, compare
from dmlcore.inspection.duplicates import suspects
from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.typing import Bools, Floats, Ints

Kind = Literal["lost", "gained", "worse", "better"]
BEFORE, AFTER = 0, 1


@dataclass(frozen=True, eq=False)
class Difference:
    """Query i of `comparison`, before and after; only queries whose class has another sample."""

    comparison: Comparison

    @property
    def change(self) -> Floats:
        """(n,): AP@R after minus before, in -1..1; its mean is the change of MAP@R."""
        before, after = self.comparison.average_precision
        change: Floats = after - before
        return change

    @property
    def indices(self) -> Ints:
        """(n,): the queries as samples of the data set."""
        indices: Ints = self.comparison.learned[BEFORE].indices[self.comparison.rows[BEFORE]]
        return indices

    @property
    def lost(self) -> Bools:
        """(n,): the nearest neighbour was of the query's class and is no longer."""
        before, after = self.comparison.right
        flipped: Bools = before & ~after
        return flipped

    @property
    def gained(self) -> Bools:
        """(n,): the nearest neighbour is of the query's class only now."""
        before, after = self.comparison.right
        flipped: Bools = ~before & after
        return flipped

    def queries(self, kind: Kind) -> Ints:
        """Positions (m,) in 0..n-1, the largest change of AP@R first.

        "lost" and "gained": the nearest neighbour flipped. "worse" and "better": AP@R fell or rose, flipped or not.
        """
        change = self.change
        chosen = {"lost": self.lost, "gained": self.gained, "worse": change < 0, "better": change > 0}[kind]
        rows = np.flatnonzero(chosen)
        fall = change[rows] if kind in ("lost", "worse") else -change[rows]
        return rows[np.lexsort((rows, fall))]

    def kept(self, k: int) -> Floats:
        """Share (n,) of the k nearest neighbours before that are among the k nearest after; k as far as known."""
        sides = []
        for learned, rows in zip(self.comparison.learned, self.comparison.rows, strict=True):
            sides.append(learned.indices[learned.neighbours[rows, :k]])
        before, after = sides
        shares: Floats = (before[:, :, None] == after[:, None, :]).any(axis=2).mean(axis=1)
        return shares


def difference(before: TestNeighbours, after: TestNeighbours) -> Difference:
    """Bring two sides together; raises `comparison.Incomparable` if they were not tested on the same samples."""
    return Difference(compare((before, after)))


@dataclass(frozen=True, eq=False)
class Turnover:
    """Queries that flipped on the way from each snapshot to the next: gained (S - 1,), lost (S - 1,), of `queries`.

    right (S,): share of queries whose nearest neighbour is right (R@1). forgotten (queries,): how often each was lost.
    """

    gained: Ints
    lost: Ints
    right: Floats
    forgotten: Ints
    indices: Ints

    @property
    def queries(self) -> int:
        """How many there are."""
        return len(self.forgotten)


def turnover(snapshots: Sequence[TestNeighbours]) -> Turnover:
    """Flips between successive snapshots, two or more; raises `comparison.Incomparable`."""
    comparison = compare(snapshots)
    right = comparison.right
    lost, gained = right[:-1] & ~right[1:], ~right[:-1] & right[1:]
    return Turnover(
        gained=gained.sum(axis=1),
        lost=lost.sum(axis=1),
        right=right.mean(axis=1),
        forgotten=lost.sum(axis=0),
        indices=snapshots[0].indices[comparison.rows[0]],
    )


@dataclass(frozen=True, eq=False)
class Doubted:
    """Samples `indices` (m,) of the data set, the class `label` (m,) that most `views` agree on, and how many (m,) do.

    votes (m,): share of their neighbours of that class, over the views that doubt them.
    """

    indices: Ints
    label: Ints
    views: Ints
    votes: Floats
    asked: int  # views


def doubted(
    views: Sequence[TestNeighbours], *, neighbours: int = 8, share: float = 0.75, at_least: float = 0.5
) -> Doubted:
    """Candidates for label errors: samples whose neighbours agree on the same other class in many embeddings.

    In each view `duplicates.suspects` edits by the nearest neighbours (Wilson 1972; of learned embeddings Bahri, Jiang
    and Gupta 2020, Deep k-NN for noisy labels); a sample stays if at least this share of the views doubts it alike, as
    one confused network alone says little. Most views first, then most votes. Raises ValueError naming the argument.
    """
    if not views:
        raise ValueError("views must be one or more embeddings")
    if not 0 < at_least <= 1:
        raise ValueError(f"at_least must lie above 0 and up to 1, got {at_least}")
    counts: dict[tuple[int, int], list[float]] = {}
    for learned in views:
        doubts = suspects(learned, neighbours, share)
        for index, label, votes in zip(learned.indices[doubts.rows], doubts.label, doubts.votes, strict=True):
            counts.setdefault((int(index), int(label)), []).append(float(votes) / doubts.asked)
    kept = [(key, votes) for key, votes in counts.items() if len(votes) >= at_least * len(views)]
    kept.sort(key=lambda item: (-len(item[1]), -float(np.mean(item[1])), item[0]))
    return Doubted(
        indices=np.array([key[0] for key, _ in kept], np.int64),
        label=np.array([key[1] for key, _ in kept], np.int64),
        views=np.array([len(votes) for _, votes in kept], np.int64),
        votes=np.array([np.mean(votes) for _, votes in kept], np.float64),
        asked=len(views),
    )
