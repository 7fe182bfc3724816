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

ELEMENTS = 2**23  # maximum number of similarities in a block: 32 MB in float32
STEPS = 2**16  # number of steps of the grid of similarities from -1 to 1


class Block(NamedTuple):
    """Similarities (R, W) of rows start..start + R to the samples from `start` on.

    `later` is False for a sample and itself or an earlier one, which must not be counted; `same` is True for pairs of
    the same class. Both cover the first columns only, (R, V): in the others, every pair is later and of two classes.
    """

    start: int
    similarities: Tensor
    later: Tensor
    same: Tensor


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
        points = torch.from_numpy((embeddings / scale)[order]).to(device)
        self.points = torch.nn.functional.normalize(points, dim=1)
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
                yield Block(start, self.points[start:stop] @ self.points[start:].T, later, same)
                start = stop


def grid_steps(similarities: Tensor) -> Tensor:
    """Return the step of the grid, 0..STEPS-1, in which each similarity lies; int32."""
    return ((similarities + 1) * (STEPS / 2)).to(torch.int32).clamp_(0, STEPS - 1)


def grid_value(steps: Ints) -> Floats:
    """Return the similarity at which each step of the grid begins."""
    value: Floats = steps.astype(float) * (2 / STEPS) - 1
    return value


class PairTable(NamedTuple):
    """Histograms of similarities. Bin k holds similarities of at least `thresholds[k]` and below `thresholds[k - 1]`.

    `same` has shape (C, K): pairs of two samples of a class. `different` has shape (G, G, K): pairs of two classes, by
    the groups of these classes, with the lower group first.
    """

    thresholds: Floats  # (K,), descending; the last is -1
    same: Ints
    different: Ints


def count_pairs(samples: SortedSamples, steps: Ints, groups: Ints) -> PairTable:
    """Count all pairs by class or group of classes.

    Args:
        samples: Sorted samples.
        steps: Steps of the grid at which bins begin, ascending; the first is 0.
        groups: Group of each class, 0..G-1, ascending, shape (C,).
    """
    bins, classes, count = len(steps), len(groups), int(groups[-1]) + 1
    device = samples.points.device
    # bin of each step, counted from the highest similarity
    table = np.searchsorted(steps, np.arange(STEPS), side="right")
    bin_of_step = torch.from_numpy((bins - table).astype(np.int32)).to(device)
    group_of = groups[samples.codes]
    codes = torch.from_numpy(samples.codes).to(device)
    offsets = torch.from_numpy((group_of * bins).astype(np.int32)).to(device)
    same = torch.zeros(classes * bins, dtype=torch.int64, device=device)
    different = torch.zeros(count, count * bins, dtype=torch.int64, device=device)
    for block in samples.blocks(np.flatnonzero(np.diff(group_of)) + 1):
        start, width = block.start, block.later.shape[1]
        bin_of_pair = bin_of_step.index_select(0, grid_steps(block.similarities).view(-1)).view(
            block.similarities.shape
        )
        rows = codes[start : start + len(bin_of_pair), None].expand(-1, width)
        alike = block.later & block.same
        same += torch.bincount(rows[alike] * bins + bin_of_pair[:, :width][alike], minlength=classes * bins)
        bin_of_pair += offsets[start:]
        bin_of_pair[:, :width][~block.later | block.same] = count * bins  # an extra bin, dropped
        different[group_of[start]] += torch.bincount(bin_of_pair.view(-1), minlength=count * bins + 1)[:-1]
    return PairTable(
        grid_value(steps[::-1]),
        same.view(classes, bins).cpu().numpy(),
        different.view(count, count, bins).cpu().numpy(),
    )


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
    bins = len(steps) + 1
    device = samples.points.device
    bin_of_step = torch.from_numpy(np.searchsorted(steps, np.arange(STEPS), side="right").astype(np.int32)).to(device)
    codes = torch.from_numpy(samples.codes).to(device)
    same, different = torch.zeros(2, classes * bins, dtype=torch.int64, device=device)
    for block in samples.blocks():
        start, width = block.start, block.later.shape[1]
        bin_of_pair = bin_of_step.index_select(0, grid_steps(block.similarities).view(-1)).view(
            block.similarities.shape
        )
        rows = codes[start : start + len(bin_of_pair), None]
        alike = block.later & block.same
        same += torch.bincount(
            rows.expand(-1, width)[alike] * bins + bin_of_pair[:, :width][alike], minlength=len(same)
        )
        dropped = ~block.later | block.same
        for side in (rows, codes[start:]):  # a pair of two classes counts for both
            places = bin_of_pair + (side * bins).to(torch.int32)
            places[:, :width][dropped] = len(different)
            different += torch.bincount(places.view(-1), minlength=len(different) + 1)[:-1]
    counts = (side.view(classes, bins).cpu().numpy() for side in (same, different))
    same_counts, different_counts = (side[:, ::-1].cumsum(axis=1)[:, ::-1] for side in counts)
    return same_counts, different_counts
