"""Counts of sample pairs by cosine similarity, block by block, so that memory does not grow with the number of pairs.

Every pair of two different samples is counted once. The samples are sorted by class, and one block holds the
similarities of some rows to all later samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dmlcore.typing import Floats, Ints, Reals

ELEMENTS = 2**22  # maximum number of similarities in a block: 16 MB in float32
STEPS = 2**16  # number of steps of the grid of similarities from -1 to 1


class Block(NamedTuple):
    """Similarities (R, W) of rows start..start + R to the samples from `start` on.

    `same` and `different` are True for pairs to be counted, of one class and of two; both are False for a sample and
    itself or an earlier one. They cover the first columns only, (R, V): all other columns are of different classes.
    """

    start: int
    similarities: Tensor
    same: Tensor
    different: Tensor


class SortedSamples:
    """Unit vectors (N, D) sorted by class, on one device, as the source of blocks.

    Args:
        embeddings: Shape (N, D), finite.
        codes: Class of each sample, 0..C-1, shape (N,).
        device: Device of the products.

    Raises:
        ValueError: If an embedding is zero, which has no direction.
    """

    def __init__(self, embeddings: Reals, codes: Ints, device: torch.device) -> None:
        order = np.argsort(codes, kind="stable")
        scale = np.abs(embeddings).max(axis=1, keepdims=True)
        if not scale.all():
            raise ValueError(f"embeddings must not be zero, but row {int(np.flatnonzero(scale == 0)[0])} is")
        points = embeddings[order]  # a copy, which is normalised in place
        points /= scale[order]
        self.points = torch.from_numpy(points).to(device)
        self.points /= self.points.norm(dim=1, keepdim=True)
        self.codes: Ints = codes[order]
        self.ends = np.searchsorted(self.codes, self.codes, side="right")  # where the class of each sample ends

    def blocks(self, starts: Ints | None = None) -> Iterator[Block]:
        """Yield blocks that cover every pair once; no block contains rows from both sides of a sample in `starts`."""
        count = len(self.codes)
        borders = {0, count} | ({int(start) for start in starts} if starts is not None else set())
        codes = torch.from_numpy(self.codes).to(self.points.device)
        for low, high in zip(sorted(borders)[:-1], sorted(borders)[1:], strict=True):
            start = low
            while start < high:
                stop = min(high, start + max(1, ELEMENTS // (count - start)))
                near = max(int(self.ends[stop - 1]), stop)  # columns beyond are later and of other classes
                rows = torch.arange(start, stop, device=codes.device)[:, None]
                columns = torch.arange(start, near, device=codes.device)
                later, same = columns > rows, codes[start:stop, None] == codes[start:near]
                similarities = self.points[start:stop] @ self.points[start:].T
                yield Block(start, similarities, same=later & same, different=later & ~same)
                start = stop


def grid_steps(similarities: Tensor) -> Tensor:
    """Return the step of the grid, 0..STEPS-1, in which each similarity lies; int32."""
    return (similarities + 1).mul_(STEPS / 2).to(torch.int32).clamp_(0, STEPS - 1)


def grid_value(steps: Ints) -> Floats:
    """Return the similarity at which each step of the grid begins."""
    value: Floats = steps.astype(float) * (2 / STEPS) - 1
    return value


class _Bins:
    """Bins between ascending steps of the grid (T,): bin 0 lies below the first step, bin T above the last.

    `codes` (N,) are 0..classes - 1 and equal for samples of a class; `same` counts pairs of the same class for each.
    """

    def __init__(self, device: torch.device, steps: Ints, codes: Ints, classes: int) -> None:
        bin_of_step = np.searchsorted(steps, np.arange(STEPS), side="right")
        self.count, self.bin_of_step = len(steps) + 1, torch.from_numpy(bin_of_step.astype(np.int32)).to(device)
        self.codes = torch.from_numpy(codes).to(device)
        self.same = torch.zeros(classes * self.count, dtype=torch.int64, device=device)  # by code and bin

    def of(self, block: Block) -> Tensor:
        """Return the bins (R, W) of a block, int32, and add its pairs of the same class to `same`."""
        steps = grid_steps(block.similarities)
        bins = self.bin_of_step.index_select(0, steps.view(-1)).view(steps.shape)
        rows = self.codes[block.start : block.start + len(bins), None].expand_as(block.same)
        near = bins[:, : block.same.shape[1]]
        self.same += torch.bincount(rows[block.same] * self.count + near[block.same], minlength=len(self.same))
        return bins


def _count_different(block: Block, places: Tensor, length: int) -> Tensor:
    """Return how many pairs of different classes have each place 0..length - 1; `places` (R, W) is changed."""
    places[:, : block.different.shape[1]][~block.different] = length
    return torch.bincount(places.view(-1), minlength=length + 1)[:-1]


class PairTable(NamedTuple):
    """Histograms of similarities. Bin k holds similarities of at least `thresholds[k]` and below `thresholds[k - 1]`.

    `same` has shape (G, K): pairs of one class, by the group of the class. `different` has shape (G, G, K):
    pairs of two classes, by the groups of these classes, with the lower group first.
    """

    thresholds: Floats  # (K,), descending; the last is -1
    same: Ints
    different: Ints


def count_pairs(samples: SortedSamples, steps: Ints, groups: Ints) -> PairTable:
    """Count all pairs by group of classes.

    Args:
        samples: Sorted samples.
        steps: Steps of the grid at which bins begin, ascending; the first is 0.
        groups: Group of each class, 0..G-1, ascending, shape (C,).
    """
    count, group_of = int(groups[-1]) + 1, groups[samples.codes]
    bins = _Bins(samples.points.device, steps, group_of, count)
    row = count * bins.count
    offsets = torch.from_numpy((group_of * bins.count).astype(np.int32)).to(bins.codes.device)
    different = torch.zeros(count, row, dtype=torch.int64, device=offsets.device)
    for block in samples.blocks(np.flatnonzero(np.diff(group_of)) + 1):
        places = bins.of(block).add_(offsets[block.start :])
        different[group_of[block.start]] += _count_different(block, places, row)
    same, across = (
        side.view(*shape, bins.count).cpu().numpy()[..., :0:-1]  # bin 0 is empty
        for side, shape in ((bins.same, (count,)), (different, (count, count)))
    )
    return PairTable(grid_value(steps[::-1]), same, across)


def count_per_class(samples: SortedSamples, steps: Ints, classes: int) -> tuple[Ints, Ints]:
    """Return how many pairs of each class reach each step of the grid.

    Args:
        samples: Sorted samples.
        steps: Steps of the grid, ascending, shape (T,).
        classes: Number of classes C.

    Returns:
        Pairs of two samples of the class, and pairs of a sample of the class and another one; both (C, T + 1). Column
        t + 1 counts similarities of at least step t, column 0 counts all.
    """
    bins = _Bins(samples.points.device, steps, samples.codes, classes)
    different = torch.zeros_like(bins.same)
    for block in samples.blocks():
        reached = bins.of(block)
        rows, columns = bins.codes[block.start : block.start + len(reached), None], bins.codes[block.start :]
        for side in (rows, columns):  # a pair of two classes counts for both
            places = reached + (side * bins.count).to(torch.int32)
            different += _count_different(block, places, len(different))
    counts = (side.view(classes, -1).cpu().numpy() for side in (bins.same, different))
    same_counts, different_counts = (side[:, ::-1].cumsum(axis=1)[:, ::-1] for side in counts)
    return same_counts, different_counts
