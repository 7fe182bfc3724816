"""Hubs, which are neighbours of unusually many samples, and orphans, which are neighbours of none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dmlcore.typing import Ints

FAR = 2.0  # number of standard deviations above the mean of N_k beyond which a sample is a hub


@dataclass(frozen=True, eq=False)
class Hubness:
    """Number of times each searched sample is among the k nearest neighbours of a query (its k-occurrences).

    Reference:
        Radovanovic, Nanopoulos & Ivanovic (2010), Hubs in space, JMLR 11: N_k, its skewness, bad k-occurrences.
    """

    k: int
    queries: int
    rows: Ints  # (g,) searched samples
    occurrences: Ints  # (g,) k-occurrences N_k
    bad: Ints  # (g,) number BN_k of k-occurrences in lists of queries of another class

    @property
    def mean(self) -> float:
        """Mean of N_k: k times the number of queries / number of searched samples, or k if every sample is a query."""
        return float(self.occurrences.mean())

    @property
    def skewness(self) -> float | None:
        """Skewness of N_k: E (N_k - mean)^3 / sd^3.

        0 means a symmetric distribution, a value above 1 strong hubness. None if all N_k are equal.
        """
        offset = self.occurrences - self.mean
        spread = float(np.sqrt(np.mean(offset**2)))
        return float(np.mean(offset**3)) / spread**3 if spread > 0 else None

    @property
    def robin_hood(self) -> float:
        """Robin Hood (Hoover) index in 0..1 (Feldbauer et al. 2018).

        This is the share of all k-occurrences that would have to be redistributed for all samples to have the same
        number.
        """
        total = int(self.occurrences.sum())
        return float(np.abs(self.occurrences - self.mean).sum() / (2 * total)) if total else 0.0

    @property
    def threshold(self) -> float:
        """Value of N_k above which a sample is a hub: mean + 2 standard deviations."""
        return self.mean + FAR * float(self.occurrences.std())

    @property
    def hubs(self) -> Ints:
        """Positions (h,) of the hubs in `rows`, most occurrences first."""
        order = np.argsort(-self.occurrences, kind="stable")
        return order[self.occurrences[order] > self.threshold]

    @property
    def bad_hubs(self) -> Ints:
        """Positions in `rows` of the hubs that occur mostly in neighbour lists of queries of another class."""
        return self.hubs[2 * self.bad[self.hubs] > self.occurrences[self.hubs]]

    @property
    def orphans(self) -> Ints:
        """Positions (o,) in `rows` of the orphans (anti-hubs): samples with N_k = 0."""
        return np.flatnonzero(self.occurrences == 0)

    @property
    def bad_share(self) -> float:
        """Share of all k-occurrences in neighbour lists of queries of another class (bad k-occurrences): 1 - P@k."""
        return float(self.bad.sum() / max(1, self.occurrences.sum()))

    @property
    def bad_by_hubs(self) -> float:
        """Share of the bad k-occurrences (queries of another class) that belong to hubs; 0 if none is bad."""
        return float(self.bad[self.hubs].sum() / max(1, self.bad.sum()))


def hubness(labels: ArrayLike, neighbours: ArrayLike, is_gallery: ArrayLike, k: int) -> Hubness:
    """Count how often each sample is among the k nearest neighbours of the queries.

    Args:
        labels: Integers (n,).
        neighbours: Row indices (n, m) of the neighbours, nearest first; -1 in rows whose neighbours were not searched.
        is_gallery: Boolean mask (n,) of the searched rows; the other rows are the queries. If none is set, every row is
            a query and is searched.
        k: Number of neighbours to count, between 1 and m.

    Raises:
        ValueError: k is out of range.
    """
    labels, neighbours, searched = np.asarray(labels), np.asarray(neighbours), np.asarray(is_gallery, bool)
    if not 1 <= k <= neighbours.shape[1]:
        raise ValueError(f"k must be in 1..{neighbours.shape[1]} (number of stored neighbours), got {k}")
    n, queries = len(labels), np.flatnonzero(~searched & (neighbours[:, 0] >= 0))
    rows = np.flatnonzero(searched) if searched.any() else np.arange(n)
    lists = neighbours[queries, :k]
    wrong = labels[lists] != labels[queries, None]
    occurrences = np.bincount(lists.ravel(), minlength=n)[rows]
    return Hubness(k, len(queries), rows, occurrences, np.bincount(lists[wrong], minlength=n)[rows])


def found_by(neighbours: ArrayLike, is_gallery: ArrayLike, row: int, k: int) -> Ints:
    """Return the rows of the queries that have sample `row` among their k nearest neighbours, best rank first."""
    neighbours = np.asarray(neighbours)[:, :k]
    query, rank = np.nonzero(neighbours == row)
    asked = ~np.asarray(is_gallery, bool)[query]
    order = np.argsort(rank[asked], kind="stable")
    finders: Ints = query[asked][order]
    return finders
