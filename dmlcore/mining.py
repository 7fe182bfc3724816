"""Miners: from a distance table and labels to the triplets a loss should see.

Each takes distances (B, B) and labels (B,) and returns (anchors, positives, negatives), (T,) int64 each, the
`indices_tuple` of `TripletLoss.forward`. Ties go to the lowest index; anchors without a positive or a negative give
nothing. A valid triplet is a != p of one class and n of another.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

Triplets = tuple[Tensor, Tensor, Tensor]
Mine = Callable[[Tensor, Tensor], Triplets]


@dataclass(frozen=True)
class Miner:
    """A miner with what a panel shows of it; call it with distances (B, B) and labels (B,)."""

    name: str
    title: str
    sentence: str
    source: str
    mine: Mine

    def __call__(self, distances: Tensor, labels: Tensor) -> Triplets:
        """Indices of anchors, positives and negatives, (T,) each."""
        if distances.ndim != 2 or distances.shape[0] != distances.shape[1] or len(labels) != len(distances):
            raise ValueError(
                f"distances must be (B, B) and labels (B,), got {tuple(distances.shape)} and {tuple(labels.shape)}"
            )
        return self.mine(distances.detach(), labels)


MINERS: dict[str, Miner] = {}


def names() -> list[str]:
    """Every miner."""
    return list(MINERS)


def miner(title: str, source: str) -> Callable[[Mine], Miner]:
    """Enter a function of distances and labels under its own name; its docstring is the panel's sentence."""

    def enter(mine: Mine) -> Miner:
        MINERS[mine.__name__] = Miner(mine.__name__, title, cast(str, inspect.getdoc(mine)), source, mine)
        return MINERS[mine.__name__]

    return enter


@miner("Semi-hard", "Schroff et al. 2015 (FaceNet), Sec. 3.2")
def semi_hard(distances: Tensor, labels: Tensor) -> Triplets:
    """For every pair, the nearest negative that is farther than the positive."""
    anchors, positives, other = _pairs(distances, labels)
    return _nearest(distances, anchors, positives, other, farther=True)


@miner("Hardest negative per pair", "Simo-Serra et al. 2015; the negatives FaceNet warns of")
def hard_negative(distances: Tensor, labels: Tensor) -> Triplets:
    """For every pair, the negative nearest to the anchor."""
    anchors, positives, other = _pairs(distances, labels)
    return _nearest(distances, anchors, positives, other)


@miner("Batch hard", "Hermans, Beyer & Leibe 2017, Eq. 5")
def batch_hard(distances: Tensor, labels: Tensor) -> Triplets:
    """For every anchor, its farthest positive and its nearest negative."""
    anchors, positive, other = _one_positive(distances, labels, farthest=True)
    return _nearest(distances, anchors, positive, other)


@miner("Easy positive, hard negative", "Xuan, Stylianou & Pless 2020 (EPHN)")
def easy_positive(distances: Tensor, labels: Tensor) -> Triplets:
    """For every anchor, its nearest positive and its nearest negative: classes may keep several clusters."""
    anchors, positive, other = _one_positive(distances, labels, farthest=False)
    return _nearest(distances, anchors, positive, other)


@miner("Easy positive, semi-hard negative", "Xuan, Stylianou & Pless 2020 (EPSHN)")
def easy_positive_semi_hard(distances: Tensor, labels: Tensor) -> Triplets:
    """For every anchor, its nearest positive and the nearest negative farther than that."""
    anchors, positive, other = _one_positive(distances, labels, farthest=False)
    return _nearest(distances, anchors, positive, other, farther=True)


def _same_and_other(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Tables (B, B) of positives (same class, not itself) and negatives."""
    same = labels[:, None] == labels
    return same & ~torch.eye(len(labels), dtype=torch.bool, device=labels.device), ~same


def _pairs(distances: Tensor, labels: Tensor) -> Triplets:
    """Anchors and positives of all ordered positive pairs, (P,) each, and the table of negatives, (B, B)."""
    positive, other = _same_and_other(labels)
    anchors, positives = positive.nonzero(as_tuple=True)
    return anchors, positives, other


def _one_positive(distances: Tensor, labels: Tensor, farthest: bool) -> Triplets:
    """Each anchor that has a positive with its farthest or nearest one, (A,) each, and the table of negatives."""
    positive, other = _same_and_other(labels)
    anchors = positive.any(1).nonzero()[:, 0]
    if not len(anchors):
        return anchors, anchors, other
    signed = -distances[anchors] if farthest else distances[anchors]
    return anchors, _first_smallest(signed.masked_fill(~positive[anchors], torch.inf)), other


def _nearest(distances: Tensor, anchors: Tensor, positives: Tensor, other: Tensor, farther: bool = False) -> Triplets:
    """For each pair (T,) the nearest negative of its anchor, or the nearest `farther` than the positive.

    other (B, B): the negatives of each anchor. Pairs without such a negative are left out.
    """
    ordered, index = distances.masked_fill(~other, torch.inf).sort(dim=1, stable=True)
    # The first place behind all distances up to d_ap; negatives at the very distance of the positive are not farther.
    place = torch.searchsorted(ordered, distances, right=True) if farther else torch.zeros_like(index)
    place = place[anchors, positives]
    found = place < other.sum(1)[anchors]
    anchors, positives = anchors[found], positives[found]
    return anchors, positives, index[anchors, place[found]]


def _first_smallest(rows: Tensor) -> Tensor:
    """Index of the first of equal minima of each row, (T, B) -> (T,); argmin promises no order."""
    if not len(rows):
        return torch.zeros(0, dtype=torch.int64, device=rows.device)
    column = torch.arange(rows.shape[1], device=rows.device)
    return torch.where(rows == rows.min(dim=1, keepdim=True).values, column, rows.shape[1]).min(dim=1).values
