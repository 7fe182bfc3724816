"""Triplet miners, each a function of distances (B, R) and of the masks (B, R) of positives and negatives.

Each returns (anchors, positives, negatives), three tensors of shape (T,) int64, to pass to `TripletLoss.forward` as
`indices_tuple`. Rows are anchors; columns are the samples of the same batch or of a reference set. Ties go to the
lowest index. Anchors without a positive or without a negative are in no triplet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import torch
from torch import Tensor

from dmlcore.catalogue import Slider
from dmlcore.mining.base import Triplets, miner

CHUNK = 1 << 22  # maximum number of triplets whose distances are compared at once, to limit memory

Margin = Annotated[float, Slider(0.01, 1.0, "m", "margin: how much farther than the positive still counts", above=0.0)]


@miner("Semi-hard", "Schroff et al. 2015 (FaceNet), Sec. 3.2; Psomas 2020, Eq. 2.20")
def semi_hard(distances: Tensor, positive: Tensor, negative: Tensor) -> Triplets:
    """Select for each pair the nearest negative that is farther than the positive."""
    anchors, positives = positive.nonzero(as_tuple=True)
    return _nearest(distances, anchors, positives, negative, farther=True)


@miner("Semi-hard, all within a margin", "Schroff et al. 2015; the miner of Psomas 2020 and Zabihzadeh 2021", many=True)
def semi_hard_window(distances: Tensor, positive: Tensor, negative: Tensor, *, margin: Margin = 0.1) -> Triplets:
    """Select all triplets whose negative is farther than the positive by at most the margin."""
    return _where(distances, positive, negative, lambda gap: (gap > 0) & (gap <= margin))


@miner("Semi-hard, else the farthest", "Schroff et al. 2015; Can 2018, Eq. 2.11-2.13")
def semi_hard_or_farthest(distances: Tensor, positive: Tensor, negative: Tensor) -> Triplets:
    """Select for each pair the nearest negative that is not closer than the positive, or else the farthest negative."""
    anchors, positives = (positive & negative.any(1, keepdim=True)).nonzero(as_tuple=True)
    ordered, index = distances.masked_fill(~negative, torch.inf).sort(dim=1, stable=True)
    place = torch.searchsorted(ordered, distances)[anchors, positives]
    exists = place < negative.sum(1)[anchors]
    farthest = _first_smallest((-distances).masked_fill(~negative, torch.inf))[anchors]
    nearest = index[anchors, place.clamp(max=distances.shape[1] - 1)]
    return anchors, positives, torch.where(exists, nearest, farthest)


@miner("Hard, all of them", "Schroff et al. 2015; the hard triplets of pytorch-metric-learning", many=True)
def hard(distances: Tensor, positive: Tensor, negative: Tensor) -> Triplets:
    """Select all triplets whose negative is not farther than the positive."""
    return _where(distances, positive, negative, lambda gap: gap <= 0)


@miner("Violating the margin, all of them", "Weinberger & Saul 2009 (impostors)", many=True)
def violating(distances: Tensor, positive: Tensor, negative: Tensor, *, margin: Margin = 0.1) -> Triplets:
    """Select all hard and semi-hard triplets: the negative is not farther than the positive by more than the margin."""
    return _where(distances, positive, negative, lambda gap: gap <= margin)


@miner("Hardest negative per pair", "Simo-Serra et al. 2015; the negatives FaceNet warns of")
def hard_negative(distances: Tensor, positive: Tensor, negative: Tensor) -> Triplets:
    """Select for each pair the negative that is nearest to the anchor."""
    anchors, positives = positive.nonzero(as_tuple=True)
    return _nearest(distances, anchors, positives, negative)


@miner("Batch hard", "Hermans, Beyer & Leibe 2017, Eq. 5")
def batch_hard(distances: Tensor, positive: Tensor, negative: Tensor) -> Triplets:
    """Select for each anchor its farthest positive and its nearest negative."""
    anchors, positives = _one_positive(distances, positive, farthest=True)
    return _nearest(distances, anchors, positives, negative)


@miner("Easy positive, hard negative", "Xuan, Stylianou & Pless 2020 (EPHN)")
def easy_positive(distances: Tensor, positive: Tensor, negative: Tensor) -> Triplets:
    """Select for each anchor its nearest positive and nearest negative, so that classes may keep several clusters."""
    anchors, positives = _one_positive(distances, positive, farthest=False)
    return _nearest(distances, anchors, positives, negative)


@miner("Easy positive, semi-hard negative", "Xuan, Stylianou & Pless 2020 (EPSHN)")
def easy_positive_semi_hard(distances: Tensor, positive: Tensor, negative: Tensor) -> Triplets:
    """Select for each anchor its nearest positive and the nearest negative that is farther than this positive."""
    anchors, positives = _one_positive(distances, positive, farthest=False)
    return _nearest(distances, anchors, positives, negative, farther=True)


def _where(distances: Tensor, positive: Tensor, negative: Tensor, chosen: Callable[[Tensor], Tensor]) -> Triplets:
    """Return all triplets (anchor, positive, negative) for which `chosen` returns True on the gap d_an - d_ap."""
    anchors, positives = positive.nonzero(as_tuple=True)
    triplets: list[Triplets] = []
    for a, p in zip(*(x.split(max(1, CHUNK // distances.shape[1])) for x in (anchors, positives)), strict=True):
        pair, negatives = (chosen(distances[a] - distances[a, p][:, None]) & negative[a]).nonzero(as_tuple=True)
        triplets.append((a[pair], p[pair], negatives))
    a, p, n = (torch.cat(x) for x in zip(*triplets, strict=True))
    return a, p, n


def _one_positive(distances: Tensor, positive: Tensor, farthest: bool) -> tuple[Tensor, Tensor]:
    """Return (anchors, positives), each (A,): anchors with a positive, and the farthest or nearest positive of each."""
    anchors = positive.any(1).nonzero()[:, 0]
    if not len(anchors):
        return anchors, anchors
    signed = -distances[anchors] if farthest else distances[anchors]
    return anchors, _first_smallest(signed.masked_fill(~positive[anchors], torch.inf))


def _nearest(
    distances: Tensor, anchors: Tensor, positives: Tensor, negative: Tensor, farther: bool = False
) -> Triplets:
    """Return triplets that combine each positive pair with the nearest negative of its anchor.

    Args:
        distances: Shape (B, R).
        anchors: Anchor of each pair, shape (T,).
        positives: Positive of each pair, shape (T,).
        negative: Mask of the negatives of each anchor, shape (B, R). Pairs without a suitable negative are dropped.
        farther: True to consider only negatives that are farther than the positive.
    """
    ordered, index = distances.masked_fill(~negative, torch.inf).sort(dim=1, stable=True)
    # First position after all distances up to d_ap, so that negatives as far away as the positive are skipped.
    place = torch.searchsorted(ordered, distances, right=True) if farther else torch.zeros_like(index)
    place = place[anchors, positives]
    exists = place < negative.sum(1)[anchors]
    anchors, positives = anchors[exists], positives[exists]
    return anchors, positives, index[anchors, place[exists]]


def _first_smallest(rows: Tensor) -> Tensor:
    """Return the index of the first minimum in each row, (T, B) -> (T,); torch.argmin may return a later one."""
    if not len(rows):
        return torch.zeros(0, dtype=torch.int64, device=rows.device)
    column = torch.arange(rows.shape[1], device=rows.device)
    return torch.where(rows == rows.min(dim=1, keepdim=True).values, column, rows.shape[1]).min(dim=1).values
