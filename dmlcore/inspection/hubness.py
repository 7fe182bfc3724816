"""Hubs: samples that are a neighbour of too many others, and those that are a neighbour of none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dmlcore.typing import Ints

FAR = 2.0  # standard deviations above the mean from which a sample counts as a hub


@dataclass(frozen=True, eq=False)
class Hubness:
    """How often each sample that can be found is among the k nearest neighbours of a query.

    Source: Radovanovic, Nanopoulos & Ivanovic 2010, Hubs in space (JMLR 11): N_k, its skewness, bad k-occurrences.
    """

    k: int
    queries: int
    rows: Ints  # (g,) samples that can be found
    occurrences: Ints  # (g,) N_k
    bad: Ints  # (g,) BN_k: of them, those for a query of another class

    @property
    def mean(self) -> float:
        """Mean of N_k: k times queries over samples, so k where every sample is a query."""
        return float(self.occurrences.mean())

    @property
    def skewness(self) -> float | None:
        """E (N_k - mean)^3 / sd^3; 0 is symmetric, above 1 strongly hubbed; None where all N_k are equal."""
        offset = self.occurrences - self.mean
        spread = float(np.sqrt(np.mean(offset**2)))
        return float(np.mean(offset**3)) / spread**3 if spread > 0 else None

    @property
    def robin_hood(self) -> float:
        """Share of all occurrences that would have to move for every sample to have the same, 0..1 (Hoover's index;
        Feldbauer et al. 2018)."""
        total = int(self.occurrences.sum())
        return float(np.abs(self.occurrences - self.mean).sum() / (2 * total)) if total else 0.0

    @property
    def threshold(self) -> float:
        """N_k above which a sample is a hub: mean + 2 standard deviations."""
        return self.mean + FAR * float(self.occurrences.std())

    @property
    def hubs(self) -> Ints:
        """Places (h,) in `rows`, most occurrences first."""
        order = np.argsort(-self.occurrences, kind="stable")
        return order[self.occurrences[order] > self.threshold]

    @property
    def bad_hubs(self) -> Ints:
        """The hubs that are a wrong neighbour more often than a right one."""
        return self.hubs[2 * self.bad[self.hubs] > self.occurrences[self.hubs]]

    @property
    def orphans(self) -> Ints:
        """Anti-hubs: places (o,) in `rows` of samples that are a neighbour of nobody, N_k = 0."""
        return np.flatnonzero(self.occurrences == 0)

    @property
    def bad_share(self) -> float:
        """Share of all k-occurrences that are bad: 1 - P@k."""
        return float(self.bad.sum() / max(1, self.occurrences.sum()))

    @property
    def bad_by_hubs(self) -> float:
        """Share of the bad k-occurrences that are those of hubs; 0 where none is bad."""
        return float(self.bad[self.hubs].sum() / max(1, self.bad.sum()))


def hubness(labels: ArrayLike, neighbours: ArrayLike, is_gallery: ArrayLike, k: int) -> Hubness:
    """Count how often each sample is found among the k nearest neighbours of the queries.

    labels (n,) integers; neighbours (n, m) rows, nearest first, -1 for a row that was not asked; is_gallery (n,): rows
    that are only searched; without any every row is a query and can be found. k in 1..m. Raises ValueError naming it.
    """
    labels, neighbours, searched = np.asarray(labels), np.asarray(neighbours), np.asarray(is_gallery, bool)
    if not 1 <= k <= neighbours.shape[1]:
        raise ValueError(f"k must be in 1..{neighbours.shape[1]} (neighbours that are kept), got {k}")
    n, queries = len(labels), np.flatnonzero(~searched & (neighbours[:, 0] >= 0))
    rows = np.flatnonzero(searched) if searched.any() else np.arange(n)
    lists = neighbours[queries, :k]
    wrong = labels[lists] != labels[queries, None]
    occurrences = np.bincount(lists.ravel(), minlength=n)[rows]
    return Hubness(k, len(queries), rows, occurrences, np.bincount(lists[wrong], minlength=n)[rows])


def found_by(neighbours: ArrayLike, is_gallery: ArrayLike, row: int, k: int) -> Ints:
    """Rows of the queries that have the sample `row` among their k nearest neighbours, those that it is nearest to in
    rank first."""
    neighbours = np.asarray(neighbours)[:, :k]
    query, rank = np.nonzero(neighbours == row)
    asked = ~np.asarray(is_gallery, bool)[query]
    order = np.argsort(rank[asked], kind="stable")
    finders: Ints = query[asked][order]
    return finders
