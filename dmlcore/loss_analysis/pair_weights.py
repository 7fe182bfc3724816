"""Weights dL/dS or dL/dd that a loss gives to the pairs (a, p), (a, n) and (p, n) of a triplet of unit vectors.

On the unit sphere any rotation-invariant loss of three points is a function L(S_ap, S_an, S_pn) of their similarities S
= x.y = 1 - d^2/2. Its gradient along the sphere is, for the anchor (and likewise for p and n),

    w_ap (p - S_ap a) + w_an (n - S_an a),    w = dL/dS.

A negative weight dL/dS attracts a pair, a positive one repels it. With d = sqrt(2 - 2S), dL/dd = -d (dL/dS).

Reference: pair-weighting view of Wang et al. 2019 (multi-similarity loss), here for triplets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from dmlcore.geometry.field_table import edge_gradient
from dmlcore.geometry.triplet import Edges
from dmlcore.losses.engine.triplet_loss import TripletLoss

Rival = Literal["perpendicular", "symmetric", "fixed"]
RIVALS: tuple[Rival, ...] = ("perpendicular", "symmetric", "fixed")
Energy = Callable[[Tensor], Tensor]


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


def unit_triplet(s: Similarities, dimension: int = 3) -> Tensor:
    """Return unit vectors a, p, n with the given inner products, shape (..., 3, dimension).

    Raises:
        ValueError: If `dimension` is below 3, or if no three linearly independent vectors have these inner products,
            that is, unless |S_ap| < 1 and the determinant is positive.
    """
    ap, an, pn = torch.broadcast_tensors(*s)
    volume = s.determinant().expand(ap.shape)
    if dimension < 3 or not bool(((volume > 0) & (ap.abs() < 1)).all()):
        raise ValueError(
            "similarities must be those of three linearly independent unit vectors, in 3 dimensions or more"
        )
    across = (1 - ap**2).sqrt()
    zero, one = torch.zeros_like(ap), torch.ones_like(ap)
    rows = [(one, zero, zero), (ap, across, zero), (an, (pn - ap * an) / across, volume.sqrt() / across)]
    points = torch.stack([torch.stack(row, -1) for row in rows], -2)
    return nn.functional.pad(points, (0, dimension - 3))


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


def gram_weights(energy: Energy, s: Similarities, dimension: int = 3) -> PairWeights:
    """Compute the pair weights of any differentiable energy of three unit vectors from its gradient.

    The vectors must be linearly independent. The gradient along the sphere then determines the three weights: it gives
    six equations, which are solved by least squares.

    Args:
        energy: Function that maps the vectors a, p, n, shape (3, dimension), to a scalar.
        s: Similarities of the pairs.
        dimension: Dimension of the vectors.

    Raises:
        ValueError: If the vectors are linearly dependent, or if no weights fit the gradient, because the energy depends
            on more than the similarities.
    """
    points = unit_triplet(s, dimension)
    weights = [_solve(energy, x) for x in points.reshape(-1, 3, dimension)]
    ap, an, pn, loss = (torch.stack(column).reshape(points.shape[:-2]) for column in zip(*weights, strict=True))
    return PairWeights(ap, an, pn, loss, loss)


def batch_energy(loss: nn.Module, labels: tuple[int, int, int] = (0, 0, 1)) -> Energy:
    """Return a function that evaluates `loss(embeddings, labels)` on the batch (a, p, n), for use with `gram_weights`.

    A pair occurs in both orders in a batch, and its weight is the sum over both orders.
    """
    return lambda points: loss(points, torch.tensor(labels))


def proxy_energy(loss: nn.Module, parameter: str = "proxies", *, transposed: bool = False) -> Energy:
    """Return the energy of a proxy loss with two classes, for use with `gram_weights`.

    The batch is the embedding a of class 0; p is the proxy of class 0 and n the proxy of class 1.

    Args:
        loss: Proxy loss with two classes.
        parameter: Name of the parameter of `loss` that holds the proxies, shape (2, D).
        transposed: True if that parameter has shape (D, 2).
    """

    def energy(points: Tensor) -> Tensor:
        proxies = points[1:].T if transposed else points[1:]
        value: Tensor = functional_call(loss, {parameter: proxies}, (points[:1], torch.tensor([0])))
        return value

    return energy


def pair_weights(loss: nn.Module, s: Similarities) -> PairWeights:
    """Compute the pair weights of any loss(embeddings, labels): directly for a triplet loss, else from the gradient."""
    return triplet_weights(loss, s) if isinstance(loss, TripletLoss) else gram_weights(batch_energy(loss), s)


def _solve(energy: Energy, points: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the weights of ap, an and pn, and the loss, for one triplet of unit vectors (3, D)."""
    with torch.enable_grad():
        x = points.detach().clone().requires_grad_()
        loss = energy(x)
        (gradient,) = torch.autograd.grad(loss, x, allow_unused=True, materialize_grads=True)
    gradient = _along_sphere(gradient, points)
    a, p, n = points
    none = torch.zeros_like(a)
    columns = [torch.stack(rows) for rows in ((p, a, none), (n, none, a), (none, n, p))]
    matrix = torch.stack([_along_sphere(column, points).flatten() for column in columns], dim=-1)
    weights = torch.linalg.lstsq(matrix, gradient.flatten()).solution
    left = (matrix @ weights - gradient.flatten()).norm()
    if not bool(left <= 1e-6 * (1 + gradient.norm())):
        raise ValueError("the gradient is no combination of the three vectors: the loss sees more than similarities")
    ap, an, pn = weights
    return ap, an, pn, loss.detach()


def _along_sphere(vectors: Tensor, points: Tensor) -> Tensor:
    """Return the components of vectors (3, D) in the tangent spaces of the unit sphere at points (3, D)."""
    return vectors - (vectors * points).sum(-1, keepdim=True) * points
