"""Kinds of similarity on which the weight of a negative pair depends: self, negative relative and positive relative.

The weight of a pair is the derivative of the loss with respect to its cosine similarity S. Here the similarities of a
batch are free numbers, so that one can change while all others stay the same, and weights come from autograd:

    self      the weight of a negative pair changes if S of all pairs of its anchor is shifted by the same amount, which
              leaves all relative similarities unchanged
    negative  it changes with S of another negative pair of its anchor
    positive  it changes with S of a positive pair of its anchor

A common factor of the weights of all other negative pairs of the batch, such as the number of terms by which a mean is
divided, does not count as a change.

Reference:
    Wang et al. 2019, Sec. 3.2; Psomas 2020, Sec. 2.3.1.6 and Table 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

import torch
from torch import Tensor

from dmlcore import losses
from dmlcore.losses.engine.batch_loss import BatchFormula, BatchPairs, PairLoss

Kind = Literal["self", "negative", "positive"]
KINDS: tuple[Kind, ...] = ("self", "negative", "positive")
Dependence = Literal["smooth", "threshold", "none"]

PER_CLASS, CLASSES = 3, 3  # samples per class and classes of the batch; its first sample is the anchor
DRAWS = 100  # number of random tables of similarities
SMALL = 1e-4  # share of its range by which a similarity moves without crossing a threshold, except by a rare chance
BY_CHANCE = 2  # largest number of draws in which a small change may cross a threshold by chance
CHANGED = 1e-7  # smallest relative change of a weight that counts


@dataclass(frozen=True)
class _FreePairs(BatchPairs):
    """Pairs of a batch whose similarities (B, B) are given; its embeddings have these inner products."""

    table: Tensor

    def cosines(self) -> Tensor:
        """Return the given similarities (B, B)."""
        return self.table

    def distances(self, kind: str) -> Tensor:
        """Return the distances (B, B) of unit vectors with the given similarities; see `distances.DISTANCES`."""
        if kind == "cosine":
            return 1 - self.table
        squares = 2 - 2 * self.table
        return squares if kind == "squared" else squares.sqrt()


def pair_losses() -> list[str]:
    """Return the names of all pair losses of the catalogue."""
    return [
        name
        for name, entry in losses.LOSSES.items()
        if isinstance(entry, BatchFormula) and isinstance(entry.build, type) and issubclass(entry.build, PairLoss)
    ]


@cache
def dependence(name: str) -> Mapping[Kind, Dependence]:
    """Return how the weight of a negative pair of a loss with default settings depends on each kind of similarity.

    Args:
        name: Name of a pair loss, see `pair_losses`.

    Returns:
        "smooth" if a small change of the similarities already changes the weight, "threshold" if only a large one does,
        by switching a term on or off, and "none" if no change has an effect on `DRAWS` random tables.

    Raises:
        ValueError: If the loss is no pair loss.
    """
    if name not in pair_losses():
        raise ValueError(f"{name}: must be a pair loss, one of {', '.join(pair_losses())}")
    loss = losses.for_training(name, classes=CLASSES, embedding_dim=1).double()
    assert isinstance(loss, PairLoss)
    generator = torch.Generator().manual_seed(0)
    changes = {(kind, size): 0 for kind in KINDS for size in ("small", "large")}
    for _ in range(DRAWS):
        table, step = _draw(generator)
        before = _weights(loss, table)
        for kind in KINDS:
            if changes[kind, "small"] > BY_CHANCE:  # already known to be smooth
                continue
            for size, share in (("small", SMALL), ("large", step)):
                after = _weights(loss, _change(table, kind, share))
                changes[kind, size] += _differs(before, after)
    return {kind: _describe(changes[kind, "small"], changes[kind, "large"]) for kind in KINDS}


def _describe(small: int, large: int) -> Dependence:
    """Return the dependence for the numbers of draws in which small and large changes had an effect."""
    if small > BY_CHANCE:
        return "smooth"
    return "threshold" if large else "none"


def _draw(generator: torch.Generator) -> tuple[Tensor, float]:
    """Return random similarities (B, B) in -1..1 and a random number in 0..1.

    Positive and negative pairs of the table have their own random centre and spread.
    """
    same = _same_class()
    table = torch.empty(same.shape, dtype=torch.float64)
    for mask in (same, ~same):
        centre = 1.96 * torch.rand((), dtype=torch.float64, generator=generator) - 0.98
        width = (0.999 - centre.abs()) * torch.rand((), dtype=torch.float64, generator=generator)
        spread = 2 * torch.rand(same.shape, dtype=torch.float64, generator=generator) - 1
        table = torch.where(mask, centre + width * spread, table)
    return table, float(torch.rand((), generator=generator))


def _change(table: Tensor, kind: Kind, share: float) -> Tensor:
    """Return the table with other similarities of the anchor (row 0).

    "self" shifts them all up by `share` of the greatest possible shift. "positive" and "negative" move one pair by
    `share` of the way to the farther end of -1..1.
    """
    changed = table.clone()
    if kind == "self":
        changed[0, 1:] += share * (1 - table[0, 1:].max())
    else:
        column = 1 if kind == "positive" else PER_CLASS
        end = -1.0 if float(table[0, column]) > 0 else 1.0
        changed[0, column] += share * (end - table[0, column])
    return changed


def _differs(before: Tensor, after: Tensor) -> bool:
    """Return True if the weight of the anchor's last negative pair differs by more than a common factor of the rest."""
    one, two = float(before[0, -1]) * _common_factor(before[1:], after[1:]), float(after[0, -1])
    return abs(two - one) > CHANGED * max(abs(one), abs(two))


def _same_class() -> Tensor:
    labels = torch.arange(CLASSES).repeat_interleave(PER_CLASS)
    return labels[:, None] == labels


def _weights(loss: PairLoss, table: Tensor) -> Tensor:
    """Return the derivatives (B, B) of the loss with respect to the similarities of negative pairs, 0 elsewhere."""
    labels, same = torch.arange(CLASSES).repeat_interleave(PER_CLASS), _same_class()
    free = table.clone().requires_grad_()
    columns = torch.eye(len(table), dtype=table.dtype)
    pairs = _FreePairs(
        rows=free,  # rows @ columns.T are the given similarities
        columns=columns,
        labels=labels,
        column_labels=labels,
        positive=same & ~torch.eye(len(table), dtype=torch.bool),
        negative=~same,
        listed=None,
        table=free,
    )
    (gradient,) = torch.autograd.grad(loss.compute(pairs), free, allow_unused=True, materialize_grads=True)
    return gradient.masked_fill(same, 0.0)


def _common_factor(before: Tensor, after: Tensor) -> float:
    """Return the factor between all weights of two tables, or 1 if there is no common factor."""
    known = before != 0
    if not bool(known.any()) or not bool(((after != 0) == known).all()):
        return 1.0
    ratios = after[known] / before[known]
    return float(ratios[0]) if bool((ratios / ratios[0] - 1).abs().max() < CHANGED / 10) else 1.0
