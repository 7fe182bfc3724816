"""Weights dL/dS or dL/dd that a loss gives to the pairs (a, p), (a, n) and (p, n) of a triplet of unit vectors.

On the unit sphere any rotation-invariant loss of three points is a function L(S_ap, S_an, S_pn) of their similarities S
= x.y = 1 - d^2/2. Its gradient along the sphere is, for the anchor (and likewise for p and n),

    w_ap (p - S_ap a) + w_an (n - S_an a),    w = dL/dS.

A negative weight dL/dS attracts a pair, a positive one repels it. With d = sqrt(2 - 2S), dL/dd = -d (dL/dS).

Reference: pair-weighting view of Wang et al. 2019 (multi-similarity loss), here for triplets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from dmlcore.geometry.field_table import edge_gradient
from dmlcore.geometry.triplet import Edges
from dmlcore.losses.engine.triplet_loss import TripletLoss

Rival = Literal["perpendicular", "symmetric", "fixed"]
RIVALS: tuple[Rival, ...] = ("perpendicular", "symmetric", "fixed")


class Similarities(NamedTuple):
    """Inner products of the unit vectors a, p, n: float64 tensors whose shapes broadcast to (...)."""

    ap: Tensor
    an: Tensor
    pn: Tensor

    def determinant(self) -> Tensor:
        """Return the determinant (...) of the Gram matrix of a, p, n.

        It is positive for linearly independent vectors, and negative if no vectors have these inner products.
        """
        return 1 + 2 * self.ap * self.an * self.pn - self.ap**2 - self.an**2 - self.pn**2

    def distances(self) -> Similarities:
        """Return the distance d = sqrt(2 - 2S) of each pair, in place of its similarity S."""
        return Similarities(*((2 - 2 * s).clamp(min=0.0).sqrt() for s in self))


@dataclass(frozen=True)
class PairWeights:
    """Derivatives dL/dS of a loss L with respect to the similarity S of each pair, all of shape (...).

    `loss` is L and `raw` is the energy before the clamp; both are equal for a loss without a clamp.
    """

    ap: Tensor
    an: Tensor
    pn: Tensor
    loss: Tensor
    raw: Tensor

    def by_distance(self, similarities: Similarities) -> PairWeights:
        """Return the derivatives dL/dd = (dL/dS) (dS/dd) = -d (dL/dS) with respect to the distances d."""
        d = similarities.distances()
        return PairWeights(-d.ap * self.ap, -d.an * self.an, -d.pn * self.pn, self.loss, self.raw)


def similarities(ap: Tensor, an: Tensor, rival: Rival = "perpendicular", pn: float = 0.0) -> Similarities:
    """Choose S_pn for given S_ap and S_an, and return all three as float64 tensors (...).

    Args:
        ap: Similarities of anchor and positive, shape (...).
        an: Similarities of anchor and negative, shape (...).
        rival: Rule for S_pn. "perpendicular" gives S_ap S_an (the directions from a to p and n are orthogonal, which is
            always possible), "symmetric" gives S_an (the negative is equally close to anchor and positive), and "fixed"
            gives `pn`.
        pn: Value of S_pn in [-1, 1] for "fixed".

    Raises:
        ValueError: If `rival` is unknown or `pn` is not in [-1, 1].
    """
    if rival not in RIVALS or not -1 <= pn <= 1:
        raise ValueError(f"rival must be one of {', '.join(RIVALS)} and pn in [-1, 1], got {rival!r}, {pn!r}")
    ap, an = torch.broadcast_tensors(ap.double(), an.double())
    return Similarities(ap, an, {"perpendicular": ap * an, "symmetric": an}.get(rival, torch.full_like(ap, pn)))


def unit_triplet(s: Similarities) -> Tensor:
    """Return unit vectors a, p, n with the given inner products, shape (..., 3, 3): rows are the vectors.

    Raises:
        ValueError: If no three linearly independent vectors have these inner products, that is, unless |S_ap| < 1 and
            the determinant is positive.
    """
    ap, an, pn = torch.broadcast_tensors(*s)
    volume = s.determinant().expand(ap.shape)
    if not bool(((volume > 0) & (ap.abs() < 1)).all()):
        raise ValueError("similarities must be those of three linearly independent unit vectors")
    across = (1 - ap**2).sqrt()
    zero, one = torch.zeros_like(ap), torch.ones_like(ap)
    rows = [(one, zero, zero), (ap, across, zero), (an, (pn - ap * an) / across, volume.sqrt() / across)]
    return torch.stack([torch.stack(row, -1) for row in rows], -2)


def triplet_weights(loss: TripletLoss, s: Similarities) -> PairWeights:
    """Compute the pair weights of a triplet loss for all given similarities (...) in one pass.

    Each weight is the derivative of the clamped loss with respect to one similarity, with the other two and the norms
    held constant. Weights are defined for S < 1 and are 0 outside the clamp window.
    """
    d, one = s.distances(), torch.ones((), dtype=s.ap.dtype)
    raw, by = edge_gradient(loss, Edges(*torch.broadcast_tensors(*d, one, one, one)))
    active = (raw > 0) & (raw < loss.m2)
    ap, an, pn = ((-g / x.where(x > 0, 1.0)).where(active & (x > 0), 0.0) for g, x in zip(by[:3], d, strict=True))
    return PairWeights(ap, an, pn, raw.clamp(0.0, loss.m2), raw)
