"""Miners of triplets, each a function of distances (B, R) and of the masks (B, R) of positives and negatives.

They return (anchors, positives, negatives), (T,) int64 each, the `indices_tuple` of `TripletLoss.forward`. Ties go to
the lowest index; anchors without a positive or a negative give nothing. Rows
are anchors; columns are the samples of the same batch, or of a reference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import torch
from torch import Tensor

from dmlcore.catalogue import Slider
from dmlcore.mining.base import Triplets, miner

CHUNK = 1 << 22  # triplets compared at once

Margin = Annotated[float, Slider(0.01, 1.0, "m", "margin: how much farther than the positive still counts", above=0.0)]


@miner("Semi-hard", "Schroff et al. 2015 (FaceNet), Sec. 3.2; Psomas 2020, Eq. 2.20")
def semi_hard(distances: Tensor, positive: Tensor, negative: Tensor) -> Triplets:
    """For every pair, the nearest negative that is farther than the positive."""
    anchors, positives = positive.nonzero(as_tuple=True)
    return _nearest(distances, anchors, positives, negative, farther=True)


@miner("Semi-hard, all within a margin", "Schroff et al. 2015; the miner of Psomas 2020 and Zabihzadeh 2021", many=True)
def semi_hard_window(distances: Tensor, positive: Tensor, negative: Tensor, *, margin: Margin = 0.1) -> Triplets:
    """All triplets whose negative is farther than the positive, but by no more than the margin."""
    return _where(distances, positive, negative, lambda gap: (gap > 0) & (gap <= margin))


@miner("Semi-hard, else the farthest", "Schroff et al. 2015; Can 2018, Eq. 2.11-2.13")
def semi_hard_or_farthest(distances: Tensor, positive: Tensor, negative: Tensor) -> Triplets:
    """For every pair, the nearest negative that is not closer than the positive, or else the farthest of all."""
    anchors, positives = (positive & negative.any(1, keepdim=True)).nonzero(as_tuple=True)
    ordered, index = distances.masked_fill(~negative, torch.inf).sort(dim=1, stable=True)
    place = torch.searchsorted(ordered, distances)[anchors, positives]
    exists = place < negative.sum(1)[anchors]
    farthest = _first_smallest((-distances).masked_fill(~negative, torch.inf))[anchors]
    nearest = index[anchors, place.clamp(max=distances.shape[1] - 1)]
    return anchors, positives, torch.where(exists, nearest, farthest)


@miner("Hard, all of them", "Schroff et al. 2015; the hard triplets of pytorch-metric-learning", many=True)
def hard(distances: Tensor, positive: Tensor, negative: Tensor) -> Triplets:
    """All triplets whose negative is not farther than the positive."""
    return _where(distances, positive, negative, lambda gap: gap <= 0)


@miner("Violating the margin, all of them", "Weinberger & Saul 2009 (impostors)", many=True)
def violating(distances: Tensor, positive: Tensor, negative: Tensor, *, margin: Margin = 0.1) -> Triplets:
    """All triplets whose negative is not farther than the positive by more than the margin: hard and semi-hard."""
    return _where(distances, positive, negative, lambda gap: gap <= margin)


@miner("Hardest negative per pair", "Simo-Serra et al. 2015; the negatives FaceNet warns of")
def hard_negative(distances: Tensor, positive: Tensor, negative: Tensor) -> Triplets:
    """For every pair, the negative nearest to the anchor."""
    anchors, positives = positive.nonzero(as_tuple=True)
    return _nearest(distances, anchors, positives, negative)


@miner("Batch hard", "Hermans, Beyer & Leibe 2017, Eq. 5")
def batch_hard(distances: Tensor, positive: Tensor, negative: Tensor) -> Triplets:
    """For every anchor, its farthest positive and its nearest negative."""
    anchors, positives = _one_positive(distances, positive, farthest=True)
    return _nearest(distances, anchors, positives, negative)


@miner("Easy positive, hard negative", "Xuan, Stylianou & Pless 2020 (EPHN)")
def easy_positive(distances: Tensor, positive: Tensor, negative: Tensor) -> Triplets:
    """For every anchor, its nearest positive and its nearest negative: classes may keep several clusters."""
    anchors, positives = _one_positive(distances, positive, farthest=False)
    return _nearest(distances, anchors, positives, negative)


@miner("Easy positive, semi-hard negative", "Xuan, Stylianou & Pless 2020 (EPSHN)")
def easy_positive_semi_hard(distances: Tensor, positive: Tensor, negative: Tensor) -> Triplets:
    """For every anchor, its nearest positive and the nearest negative farther than that."""
    anchors, positives = _one_positive(distances, positive, farthest=False)
    return _nearest(distances, anchors, positives, negative, farther=True)


def _where(distances: Tensor, positive: Tensor, negative: Tensor, chosen: Callable[[Tensor], Tensor]) -> Triplets:
    """All valid triplets whose gap d_an - d_ap is chosen."""
    anchors, positives = positive.nonzero(as_tuple=True)
    triplets: list[Triplets] = []
    for a, p in zip(*(x.split(max(1, CHUNK // distances.shape[1])) for x in (anchors, positives)), strict=True):
        pair, negatives = (chosen(distances[a] - distances[a, p][:, None]) & negative[a]).nonzero(as_tuple=True)
        triplets.append((a[pair], p[pair], negatives))
    a, p, n = (torch.cat(x) for x in zip(*triplets, strict=True))
    return a, p, n


def _one_positive(distances: Tensor, positive: Tensor, farthest: bool) -> tuple[Tensor, Tensor]:
    """Each anchor that has a positive with its farthest or nearest one, (A,) each."""
    anchors = positive.any(1).nonzero()[:, 0]
    if not len(anchors):
        return anchors, anchors
    signed = -distances[anchors] if farthest else distances[anchors]
    return anchors, _first_smallest(signed.masked_fill(~positive[anchors], torch.inf))


def _nearest(
    distances: Tensor, anchors: Tensor, positives: Tensor, negative: Tensor, farther: bool = False
) -> Triplets:
    """For each pair (T,) the nearest negative of its anchor, or the nearest `farther` than the positive.

    negative (B, R): the negatives of each anchor. Pairs without such a negative are left out.
    """
    ordered, index = distances.masked_fill(~negative, torch.inf).sort(dim=1, stable=True)
    # The first place behind all distances up to d_ap; negatives at the very distance of the positive are not farther.
    place = torch.searchsorted(ordered, distances, right=True) if farther else torch.zeros_like(index)
    place = place[anchors, positives]
    exists = place < negative.sum(1)[anchors]
    anchors, positives = anchors[exists], positives[exists]
    return anchors, positives, index[anchors, place[exists]]


def _first_smallest(rows: Tensor) -> Tensor:
    """Index of the first of equal minima of each row, (T, B) -> (T,); argmin promises no order."""
    if not len(rows):
        return torch.zeros(0, dtype=torch.int64, device=rows.device)
    column = torch.arange(rows.shape[1], device=rows.device)
    return torch.where(rows == rows.min(dim=1, keepdim=True).values, column, rows.shape[1]).min(dim=1).values
