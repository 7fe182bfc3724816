"""Runs on the same queries: where one finds the right neighbour and another does not.

As Figures 3.7, 3.8, 4.3 and 4.4 of the source show them, row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dmlcore.data import Dataset
from dmlcore.data.identities import identities
from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.typing import Bools, Floats, Ints


class Incomparable(ValueError):
    """Runs that were not tested on the same samples; the message says in what they differ."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Query i is row `rows[r, i]` of `learned[r]`; only queries whose class has another sample, by their index."""

    learned: tuple[TestNeighbours, ...]
    rows: Ints  # (runs, n)

    @property
    def right(self) -> Bools:
        """(runs, n): the nearest neighbour is of the query's class."""
        return np.stack([learned.right[rows, 0] for learned, rows in zip(self.learned, self.rows, strict=True)])

    @property
    def average_precision(self) -> Floats:
        """(runs, n): AP@R."""
        return np.stack(
            [learned.average_precision[rows] for learned, rows in zip(self.learned, self.rows, strict=True)]
        )

    def wins(self, better: int, worse: int) -> Ints:
        """Queries (m,), positions in 0..n-1, where one run is right and the other wrong, by difference of AP@R."""
        right, precision = self.right, self.average_precision
        won = np.flatnonzero(right[better] & ~right[worse])
        gain = precision[better, won] - precision[worse, won]
        return won[np.lexsort((won, -gain))]

    def counts(self, first: int, second: int) -> tuple[int, int, int, int]:
        """Queries that both, the first alone, the second alone, and none of two runs has right."""
        a, b = self.right[[first, second]]
        return int((a & b).sum()), int((a & ~b).sum()), int((~a & b).sum()), int((~a & ~b).sum())

    def by_class(self, first: int, second: int) -> Floats:
        """(C,): mean AP@R of the queries of each class, the second run minus the first, in the order of its number."""
        labels = self.learned[first].labels[self.rows[first]]
        precision = self.average_precision
        counts = np.bincount(labels)
        sums = np.bincount(labels, weights=precision[second] - precision[first])
        means: Floats = sums[counts > 0] / counts[counts > 0]
        return means

    def p_value(self, first: int, second: int) -> float:
        """Probability of at least this uneven a split of the queries that one run alone has right, by chance.

        Exact McNemar test: two-sided binomial with p = 1/2. About these very queries and weights; how much another
        seed would change is another question, and mostly a larger one. Source: McNemar (1947).
        """
        from scipy.stats import binomtest  # slow to import

        _, a, b, _ = self.counts(first, second)
        return float(binomtest(a, a + b).pvalue) if a + b else 1.0


def compare(learned: Sequence[TestNeighbours]) -> Comparison:
    """Bring the queries of two or more runs together; raises Incomparable naming the run, counted from 1."""
    first = learned[0]
    orders = [np.argsort(one.indices, kind="stable") for one in learned]
    for number, (one, order) in enumerate(zip(learned, orders, strict=True), 1):
        if len(one.indices) != len(first.indices) or (one.indices[order] != first.indices[orders[0]]).any():
            shared = len(np.intersect1d(one.indices, first.indices))
            raise Incomparable(
                f"run {number} was tested on {len(one.indices):,} samples and run 1 on {len(first.indices):,}, of "
                f"which they share {shared:,}: the parts of the data set differ"
            )
        if (one.labels[order] != first.labels[orders[0]]).any():
            raise Incomparable(f"run {number} was tested with other labels than run 1")
        if (one.is_gallery[order] != first.is_gallery[orders[0]]).any():
            raise Incomparable(f"run {number} searches another gallery than run 1")
        if one.content is not None and first.content is not None:
            other = int((one.content[order] != first.content[orders[0]]).any(axis=1).sum())
            if other:
                raise Incomparable(f"run {number} was tested on other samples than run 1: {_other(other, len(order))}")
    scored = ~np.isnan(first.average_precision[orders[0]])
    for one, order in zip(learned, orders, strict=True):
        scored &= one.queries[order]  # a sample is drawn by the number of the samples, so that of others is the same
    return Comparison(tuple(learned), np.stack([order[scored] for order in orders]))


def refuse_other_samples(
    first: TestNeighbours, second: TestNeighbours, read: Callable[[], tuple[Dataset, Dataset]]
) -> None:
    """Raise Incomparable unless both were tested on the same samples.

    read: the data sets of the two, which are asked where an evaluation of an earlier release does not say which its
    samples were; raises DataError where they cannot be read.
    """
    if first.content is not None and second.content is not None:
        compare((first, second))
        return
    one, two = read()
    if one.name != two.name:
        raise Incomparable(f"the data sets differ: {one.name} and {two.name}")
    indices = first.indices
    if len(one.labels) != len(two.labels) or (one.labels[indices] != two.labels[indices]).any():
        raise Incomparable(f"the samples of {one.name} differ: other folders, or other files in them")
    if other := int((identities(one, indices) != identities(two, indices)).any(axis=1).sum()):
        raise Incomparable(f"the samples of {one.name} differ: {_other(other, len(indices))}")


def _other(count: int, learned: int) -> str:
    return (
        f"{count:,} of {learned:,} differ although their numbers are the same; drawn from another seed, or other files"
    )
