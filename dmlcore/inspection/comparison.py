"""Comparison of runs, query by query: which runs retrieve a nearest neighbour of the query's class.

Follows Figures 3.7, 3.8, 4.3 and 4.4 of the thesis, which show each query in one row with its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dmlcore.data import Dataset
from dmlcore.data.identities import identities
from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.typing import Bools, Floats, Ints


class Incomparable(ValueError):
    """Error for runs that were not tested on the same samples; the message names the difference."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Neighbours of several runs, aligned by query.

    Query i is stored in row `rows[r, i]` of `learned[r]`, the neighbours of run r. Only queries whose class has another
    sample are included, in ascending order of their sample index; without labels, all queries are.
    """

    learned: tuple[TestNeighbours, ...]
    rows: Ints  # (runs, n)

    @property
    def right(self) -> Bools:
        """Boolean mask (runs, n), True where the nearest neighbour has the class of the query."""
        return np.stack([learned.right[rows, 0] for learned, rows in zip(self.learned, self.rows, strict=True)])

    @property
    def average_precision(self) -> Floats:
        """AP@R of each run and query, shape (runs, n)."""
        return np.stack(
            [learned.average_precision[rows] for learned, rows in zip(self.learned, self.rows, strict=True)]
        )

    def wins(self, better: int, worse: int) -> Ints:
        """Return the queries with a nearest neighbour of their own class in run `better` but not in run `worse`.

        Returns:
            Query positions (m,) in 0..n-1, sorted by AP@R in `better` minus AP@R in `worse`, largest first.
        """
        right, precision = self.right, self.average_precision
        won = np.flatnonzero(right[better] & ~right[worse])
        gain = precision[better, won] - precision[worse, won]
        return won[np.lexsort((won, -gain))]

    def counts(self, first: int, second: int) -> tuple[int, int, int, int]:
        """Count the queries that have a nearest neighbour of their own class in both runs, in one or in neither.

        Returns:
            Numbers of such queries for both runs, only the first, only the second, and neither.
        """
        a, b = self.right[[first, second]]
        return int((a & b).sum()), int((a & ~b).sum()), int((~a & b).sum()), int((~a & ~b).sum())

    def by_class(self, first: int, second: int) -> Floats:
        """Return AP@R in run `second` minus AP@R in run `first`, averaged per class, shape (C,), by ascending label."""
        labels = self.learned[first].labels[self.rows[first]]
        precision = self.average_precision
        counts = np.bincount(labels)
        sums = np.bincount(labels, weights=precision[second] - precision[first])
        means: Floats = sums[counts > 0] / counts[counts > 0]
        return means

    def p_value(self, first: int, second: int) -> float:
        """Return the p-value of the exact McNemar test on queries with a correct nearest neighbour in only one run.

        The test is a two-sided binomial test with p = 1/2. It compares the two trained networks on these queries and
        ignores the variation between training seeds, which is usually larger.

        Reference:
            McNemar (1947).
        """
        from scipy.stats import binomtest  # slow to import

        _, a, b, _ = self.counts(first, second)
        return float(binomtest(a, a + b).pvalue) if a + b else 1.0


def compare(learned: Sequence[TestNeighbours]) -> Comparison:
    """Align the queries of two or more runs.

    Raises:
        Incomparable: The runs were not tested on the same samples; the message numbers the runs from 1.
    """
    first = learned[0]
    orders = [np.argsort(one.indices, kind="stable") for one in learned]
    for number, (one, order) in enumerate(zip(learned, orders, strict=True), 1):
        if len(one.indices) != len(first.indices) or (one.indices[order] != first.indices[orders[0]]).any():
            shared = len(np.intersect1d(one.indices, first.indices))
            raise Incomparable(
                f"run {number} was tested on {len(one.indices):,} samples and run 1 on {len(first.indices):,}, of "
                f"which {shared:,} are in both: the test splits differ"
            )
        if (one.labels[order] != first.labels[orders[0]]).any():
            raise Incomparable(f"run {number} and run 1 have different labels")
        if (one.is_gallery[order] != first.is_gallery[orders[0]]).any():
            raise Incomparable(f"run {number} and run 1 have different galleries")
        if one.content is not None and first.content is not None:
            other = int((one.content[order] != first.content[orders[0]]).any(axis=1).sum())
            if other:
                raise Incomparable(
                    f"run {number} and run 1 were tested on different samples: {_other(other, len(order))}"
                )
    scored = ~np.isnan(first.average_precision[orders[0]]) | (not first.has_labels)
    for one, order in zip(learned, orders, strict=True):
        # If a run scored only a random sample of its queries, keep only queries that all runs scored.
        scored &= one.queries[order]
    return Comparison(tuple(learned), np.stack([order[scored] for order in orders]))


def refuse_other_samples(first: TestNeighbours, second: TestNeighbours, read: Callable[[], Iterable[Dataset]]) -> None:
    """Raise Incomparable unless two evaluations used the same test samples.

    Args:
        first: Neighbours of the first evaluation.
        second: Neighbours of the second evaluation.
        read: Function that loads both data sets. It is called only if one of the evaluations comes from an earlier
            release and does not store the identities of its samples.

    Raises:
        Incomparable: The test samples differ.
        DataError: `read` could not load the data sets.
    """
    if first.content is not None and second.content is not None:
        compare((first, second))
        return
    one, two = read()
    if one.name != two.name:
        raise Incomparable(f"the data sets differ: {one.name} and {two.name}")
    indices = first.indices
    if len(one.labels) != len(two.labels) or (one.labels[indices] != two.labels[indices]).any():
        raise Incomparable(f"the samples of {one.name} differ: their folders or files are different")
    if other := int((identities(one, indices) != identities(two, indices)).any(axis=1).sum()):
        raise Incomparable(f"the samples of {one.name} differ: {_other(other, len(indices))}")


def _other(count: int, learned: int) -> str:
    return (
        f"{count:,} of {learned:,} have equal indices but different contents; the seed of the data or the files changed"
    )
