"""Near-duplicates across classes and samples whose neighbours agree on another class: where labels may be wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.typing import Floats, Ints


@dataclass(frozen=True, eq=False)
class SamplePairs:
    """Pairs of samples of different classes, nearest first; `complete` if no pair within `cutoff` can be missing."""

    first: Ints  # (m,)
    second: Ints  # (m,)
    distances: Floats  # (m,)
    cutoff: float
    complete: bool


@dataclass(frozen=True, eq=False)
class Suspects:
    """Samples `rows` (m,) whose nearest neighbours are mostly, `votes` (m,) of `asked`, of one other class `label`."""

    rows: Ints
    label: Ints
    votes: Ints
    asked: int


def across_classes(learned: TestNeighbours, quantile: float = 0.01) -> SamplePairs:
    """Pairs of different classes no farther apart than this quantile of the distances to nearest neighbours.

    Candidates for the same thing photographed twice, for one label too many, and for classes that look alike. Where
    the data set has a gallery of its own, at least one of each pair is in it; where only some queries were asked, at
    least one of each pair is among them. Raises ValueError for a quantile outside 0..1.
    """
    if not 0 <= quantile <= 1:
        raise ValueError(f"quantile must lie in 0..1, got {quantile}")
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


def suspects(learned: TestNeighbours, asked: int = 8, share: float = 0.75) -> Suspects:
    """Samples without one of their own class among the `asked` nearest, of which at least this share are of another.

    The most agreed first, then the nearest. A network that confuses two classes shows the same, so look before you
    relabel. Samples alone in their class are left out. Raises ValueError naming the argument.
    """
    if not asked >= 1:
        raise ValueError(f"asked must be at least 1, got {asked}")
    if not 0 < share <= 1:
        raise ValueError(f"share must lie above 0 and up to 1, got {share}")
    asked = min(asked, learned.neighbours.shape[1])
    rows = np.flatnonzero(~learned.right[:, :asked].any(axis=1) & (learned.positives.nearest >= 0))
    votes = np.sort(learned.labels[learned.neighbours[rows, :asked]], axis=1)
    label, most = _commonest(votes)
    keep = most >= np.ceil(share * asked)
    rows, label, most = rows[keep], label[keep], most[keep]
    order = np.lexsort((rows, learned.distances[rows, :asked].mean(axis=1), -most))
    return Suspects(rows[order], label[order], most[order], asked)


def _commonest(ordered: Ints) -> tuple[Ints, Ints]:
    """The commonest value of each row of sorted values (m, k), the lower of two, and how often it is there."""
    counts = np.stack([(ordered == ordered[:, [i]]).sum(axis=1) for i in range(ordered.shape[1])], axis=1)
    at = counts.argmax(axis=1)
    rows = np.arange(len(ordered))
    return ordered[rows, at], counts[rows, at]
