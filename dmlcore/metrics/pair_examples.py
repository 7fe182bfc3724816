"""Examples of sample pairs on both sides of every threshold of a list, with the numbers of pairs between thresholds.

Memory does not grow with the number of pairs: the similarities are computed block by block, and of the pairs between
two neighbouring thresholds, only those with the lowest and the highest similarities are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from dmlcore.metrics.pair_counts import SortedSamples
from dmlcore.metrics.retrieval import class_ids
from dmlcore.metrics.verification import RESOLUTION, sorted_samples
from dmlcore.typing import Floats, Ints

CHUNK = 2**20  # similarities that are sorted at a time


@dataclass(frozen=True)
class PairExamples:
    """Pairs of one kind, of the same class or of different classes.

    Bin b holds the pairs with a similarity of at least `thresholds[b - 1]` and below `thresholds[b]`; bin 0 lies below
    the first threshold and bin T above the last.

    Attributes:
        thresholds: Cosine similarities, ascending, shape (T,).
        counts: Number of pairs in each bin, shape (T + 1,).
        first: Row of one sample of each kept pair, shape (M,), by ascending similarity.
        second: Row of the other sample, shape (M,).
        similarities: Cosine similarity of each kept pair, shape (M,), ascending.
        bins: Bin of each kept pair, shape (M,), ascending.
        keep: Number of pairs that are kept at either end of a bin; a bin of at most twice as many pairs is complete.
    """

    thresholds: Floats
    counts: Ints = field(repr=False)
    first: Ints = field(repr=False)
    second: Ints = field(repr=False)
    similarities: Floats = field(repr=False)
    bins: Ints = field(repr=False)
    keep: int

    def accepted(self) -> Ints:
        """Return the number of pairs with at least the similarity of each threshold, shape (T,)."""
        reached: Ints = self.counts[::-1].cumsum()[::-1]
        return reached[1:]

    def just_below(self, threshold: int) -> Ints:
        """Return the positions of the `keep` most similar pairs below a threshold, given by its index, nearest first.

        There are fewer if fewer pairs are below it.
        """
        end = int(np.searchsorted(self.bins, threshold, side="right"))
        return np.arange(end)[::-1][: self.keep]

    def just_above(self, threshold: int) -> Ints:
        """Return the positions of the `keep` least similar pairs that reach a threshold, nearest first."""
        start = int(np.searchsorted(self.bins, threshold, side="right"))
        return np.arange(start, len(self.bins))[: self.keep]

    def lowest(self, threshold: int) -> Ints:
        """Return the positions of the `keep` least similar pairs if they are below a threshold, lowest first."""
        end = int(np.searchsorted(self.bins, threshold, side="right"))
        return np.arange(end)[: self.keep]

    def highest(self, threshold: int) -> Ints:
        """Return the positions of the `keep` most similar pairs if they reach a threshold, highest first."""
        start = int(np.searchsorted(self.bins, threshold, side="right"))
        return np.arange(start, len(self.bins))[::-1][: self.keep]


def pair_examples(
    embeddings: ArrayLike | Tensor,
    labels: ArrayLike | Tensor,
    thresholds: Sequence[float] | Floats,
    *,
    keep: int = 6,
    device: torch.device | None = None,
) -> tuple[PairExamples, PairExamples]:
    """Count the pairs between thresholds and keep the nearest and the most extreme ones for each threshold.

    Args:
        embeddings: Shape (N, D), without zero rows.
        labels: Shape (N,), integers.
        thresholds: Cosine similarities, ascending, shape (T,). Pairs that are lower by at most half of
            `verification.RESOLUTION` reach a threshold, as in `verification`.
        keep: Number of pairs to keep at either end of a bin.
        device: Device of the products; the CPU by default.

    Returns:
        Pairs of the same class and pairs of different classes.

    Raises:
        TypeError, ValueError: As `verification`; and if thresholds are not ascending, or `keep` is below 1.
    """
    wanted = np.asarray(thresholds, dtype=float)
    if wanted.ndim != 1 or not len(wanted) or not (np.diff(wanted) > 0).all():
        raise ValueError("thresholds must be strictly ascending numbers")
    if keep < 1:
        raise ValueError(f"keep must be at least 1, got {keep}")
    samples, _ = sorted_samples(embeddings, labels, device)
    order = np.argsort(class_ids("labels", labels, len(samples.codes)), kind="stable")
    shelf = _Shelf(samples, wanted - RESOLUTION / 2, keep)
    for block in samples.blocks():
        near, width = block.same.shape[1], block.similarities.shape[1]
        step = max(1, CHUNK // width)
        for row in range(0, len(block.similarities), step):
            rows = slice(row, row + step)
            values = block.similarities[rows]
            places = torch.bucketize(values, shelf.bounds, right=True) + shelf.bins  # of different classes
            places[:, :near][block.same[rows]] -= shelf.bins
            places[:, :near][~(block.same[rows] | block.different[rows])] = 2 * shelf.bins  # counted elsewhere
            shelf.add(values, places, block.start + row, block.start)
    counts = shelf.counts.cpu().numpy()
    kept_places, kept, first, second = (part.cpu().numpy() for part in shelf.kept)
    made = []
    for kind in (0, 1):
        rows_of_kind = kept_places // shelf.bins == kind
        made.append(
            PairExamples(
                thresholds=wanted,
                counts=counts[kind * shelf.bins : (kind + 1) * shelf.bins],
                first=order[first[rows_of_kind]],
                second=order[second[rows_of_kind]],
                similarities=kept[rows_of_kind].astype(float),
                bins=kept_places[rows_of_kind] - kind * shelf.bins,
                keep=keep,
            )
        )
    return made[0], made[1]


class _Shelf:
    """Counts of pairs by place, and for each place the pairs with the lowest and the highest similarities.

    A place is the bin of a pair of the same class, or the number of bins plus the bin of a pair of different classes.
    """

    def __init__(self, samples: SortedSamples, bounds: Floats, keep: int) -> None:
        device, dtype = samples.points.device, samples.points.dtype
        self.bounds, self.keep, self.bins = torch.from_numpy(bounds).to(device, dtype), keep, len(bounds) + 1
        self.counts = torch.zeros(2 * self.bins, dtype=torch.int64, device=device)
        whole = torch.zeros(0, dtype=torch.int64, device=device)
        self.kept = (whole, torch.zeros(0, dtype=dtype, device=device), whole, whole)  # place, similarity, two rows
        # a pair is kept if its similarity is below or above these; pairs at the last place never are
        self.low = torch.full((2 * self.bins + 1,), torch.inf, dtype=dtype, device=device)
        self.high = -self.low
        self.low[-1], self.high[-1] = -torch.inf, torch.inf

    def add(self, values: Tensor, places: Tensor, first_row: int, first_column: int) -> None:
        """Count the similarities (R, W) of a chunk of rows and keep the outermost of each place."""
        self.counts += torch.bincount(places.reshape(-1), minlength=2 * self.bins + 1)[:-1]
        outer = (values < self.low[places]) | (values > self.high[places])
        rows, columns = outer.nonzero(as_tuple=True)
        chosen = (places[outer], values[outer], rows + first_row, columns + first_column)
        joined = [torch.cat(pair) for pair in zip(self.kept, chosen, strict=True)]
        by_value = joined[1].argsort(stable=True)
        sequence = by_value[joined[0][by_value].argsort(stable=True)]
        joined = [part[sequence] for part in joined]
        sizes = torch.bincount(joined[0], minlength=2 * self.bins)
        ends = sizes.cumsum(0)
        position = torch.arange(len(sequence), device=sequence.device)
        from_start = position - (ends - sizes)[joined[0]]
        from_end = ends[joined[0]] - 1 - position
        outermost = (from_start < self.keep) | (from_end < self.keep)
        for bound, distance in ((self.low, from_start), (self.high, from_end)):
            last = distance == self.keep - 1
            bound[joined[0][last]] = joined[1][last]
        self.kept = (joined[0][outermost], joined[1][outermost], joined[2][outermost], joined[3][outermost])
