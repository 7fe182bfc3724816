"""Signs of label errors: near-duplicates across classes, and samples whose neighbours agree on another class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.typing import Floats, Ints


@dataclass(frozen=True, eq=False)
class SamplePairs:
    """Pairs of samples of different classes, nearest first.

    Args:
        first: Row (m,) of one sample of each pair.
        second: Row (m,) of the other sample, greater than `first`.
        distances: Distance (m,) between the two samples.
        cutoff: Largest distance of a pair.
        complete: True if the neighbour lists are long enough to contain all pairs within `cutoff`.
    """

    first: Ints
    second: Ints
    distances: Floats
    cutoff: float
    complete: bool


@dataclass(frozen=True, eq=False)
class Suspects:
    """Samples whose nearest neighbours mostly belong to one other class.

    Args:
        rows: Rows (m,) of the samples.
        label: Label (m,) of this other class.
        votes: Number (m,) of neighbours of that class.
        asked: Number of neighbours that were examined.
    """

    rows: Ints
    label: Ints
    votes: Ints
    asked: int


def across_classes(learned: TestNeighbours, quantile: float = 0.01) -> SamplePairs:
    """Return the pairs of samples of different classes that are unusually close.

    Such pairs are candidates for the same object photographed twice, for label errors, and for classes that look alike.
    If the data set has its own gallery, at least one sample of each pair belongs to it; if only some queries were
    searched, at least one sample of each pair is among them.

    Args:
        learned: Neighbours of the test split.
        quantile: Largest distance of a pair, given as a quantile in 0..1 of the distances between samples and their
            nearest neighbours.

    Raises:
        ValueError: The quantile is outside 0..1.
    """
    if not 0 <= quantile <= 1:
        raise ValueError(f"quantile must be in 0..1, got {quantile}")
    known = learned.distances[learned.neighbours[:, 0] >= 0, 0]
    cutoff = float(np.quantile(known, quantile))
    near = (learned.distances <= cutoff) & ~learned.right
    row, place = np.nonzero(near)
    other, distance = learned.neighbours[row, place], learned.distances[row, place]
    low, high = np.minimum(row, other), np.maximum(row, other)
    _, once = np.unique(low * len(learned.labels) + high, return_index=True)
    order = once[np.lexsort((high[once], low[once], distance[once]))]
    k = learned.neighbours.shape[1]
    listed_all = k >= (int(learned.is_gallery.sum()) or len(learned.labels)) - 1
    complete = listed_all or bool((learned.distances[:, -1] > cutoff).all())
    return SamplePairs(low[order], high[order], distance[order], cutoff, complete)


def find_suspects(learned: TestNeighbours, asked: int = 8, share: float = 0.75) -> Suspects:
    """Return samples whose nearest neighbours all have other classes and mostly agree on one of them.

    Samples are sorted by the number of agreeing neighbours, highest first, then by the mean distance to their
    neighbours. A network that confuses two classes produces the same pattern, so check the images before changing
    labels. Samples that are alone in their class are skipped.

    Args:
        learned: Neighbours of the test split.
        asked: Number of nearest neighbours to examine.
        share: Share of these neighbours that must belong to the same other class, in (0, 1].

    Raises:
        ValueError: An argument is out of range.
    """
    if not asked >= 1:
        raise ValueError(f"asked must be at least 1, got {asked}")
    if not 0 < share <= 1:
        raise ValueError(f"share must be in (0, 1], got {share}")
    asked = min(asked, learned.neighbours.shape[1])
    rows = np.flatnonzero(~learned.right[:, :asked].any(axis=1) & (learned.positives.nearest >= 0))
    votes = np.sort(learned.labels[learned.neighbours[rows, :asked]], axis=1)
    label, most = _commonest(votes)
    keep = most >= np.ceil(share * asked)
    rows, label, most = rows[keep], label[keep], most[keep]
    order = np.lexsort((rows, learned.distances[rows, :asked].mean(axis=1), -most))
    return Suspects(rows[order], label[order], most[order], asked)


def _commonest(ordered: Ints) -> tuple[Ints, Ints]:
    """Return the most frequent value in each sorted row (m, k), the lowest one on ties, and its count."""
    counts = np.stack([(ordered == ordered[:, [i]]).sum(axis=1) for i in range(ordered.shape[1])], axis=1)
    at = counts.argmax(axis=1)
    rows = np.arange(len(ordered))
    return ordered[rows, at], counts[rows, at]
