"""Forces on the points of a triplet, split along its edges, and the field a probe point feels as it scans the plane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import torch
from torch import Tensor

from dmlcore.geometry.triplet import Triplet, distance

Probe = Literal["anchor", "positive", "negative"]


class TripletEnergy(Protocol):
    """A triplet loss: energies of triplets of points, shapes (..., D) x3 -> (...)."""

    m2: float

    def raw(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Energy with its margin, before the clamp."""
        ...

    def clamped(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Energy after the clamp to [0, m2]."""
        ...


class EdgeEnergy(Protocol):
    """A triplet loss as a function of edge lengths and squared norms."""

    m2: float
    floor: float

    def raw_of(self, triplet: Triplet) -> Tensor:
        """Energy with its margin, before the clamp."""
        ...


def forces(loss: TripletEnergy, a: Tensor, p: Tensor, n: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Forces on anchor, positive, negative: minus the gradient of the clamped loss.

    Outside 0 < raw < m2 all three are zero.

    Shapes: (..., D) x3, broadcast together; each force has the shape of its own point (summed over the broadcast).
    Raises: TypeError or ValueError naming the point that is no finite floating-point tensor.
    Source: Karaman 2021, Sec. 3.1.

    Example, where the anchor is pulled to the positive and pushed off the negative:
        >>> import torch
        >>> from dmlcore import geometry, losses
        >>> a, p, n = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.25]])
        >>> force_a, force_p, force_n = geometry.forces(losses.create("ranking", m=0.5), a, p, n)
        >>> force_a
        tensor([ 1., -1.])
        >>> (force_a + force_p + force_n).tolist()
        [0.0, 0.0]
    """
    for name, x in (("anchor", a), ("positive", p), ("negative", n)):
        if not isinstance(x, Tensor) or not x.is_floating_point():
            kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
            raise TypeError(f"{name} must be a floating-point tensor, got {kind}")
    with torch.enable_grad():
        points = [x.detach().requires_grad_() for x in (a, p, n)]
        energy = loss.clamped(*points).sum()
        gradients = torch.autograd.grad(energy, points, allow_unused=True, materialize_grads=True)
    force_a, force_p, force_n = (-g for g in gradients)
    return force_a, force_p, force_n


class Edges(NamedTuple):
    """What a triplet loss depends on, or its derivative by each: edge lengths and squared norms, (...) each."""

    ap: Tensor
    an: Tensor
    pn: Tensor
    aa: Tensor
    pp: Tensor
    nn: Tensor

    @classmethod
    def of(cls, a: Tensor, p: Tensor, n: Tensor) -> Edges:
        """Of triplets of points, shapes (..., D) x3, which broadcast."""
        edges = distance(a, p), distance(a, n), distance(p, n)
        return cls(*torch.broadcast_tensors(*edges, *(x.square().sum(-1) for x in (a, p, n))))


def edge_gradient(loss: EdgeEnergy, edges: Edges) -> tuple[Tensor, Edges]:
    """raw (...) and its derivative by every edge length and squared norm, six tensors (...); one pass for all.

    The derivative is that of raw everywhere, whether the clamp passes it on or not.
    """
    with torch.enable_grad():
        leaves = Edges(*(x.detach().requires_grad_() for x in edges))
        raw = loss.raw_of(
            Triplet(lambda pair: getattr(leaves, pair), lambda vertex: getattr(leaves, 2 * vertex), loss.floor)
        )
        derivatives = torch.autograd.grad(raw.sum(), leaves, allow_unused=True, materialize_grads=True)
    return raw.detach(), Edges(*derivatives)


@dataclass(frozen=True)
class Decomposition:
    """Forces on a triplet: resultants, and their parts along the three edges and along the points' own vectors.

    grad_a = pull_ap u_ap - push_an u_an + res_a, grad_p = -pull_ap u_ap - push_pn u_pn + res_p,
    grad_n = push_an u_an + push_pn u_pn + res_n, with u_xy = (x - y) / |x - y| and 0 where x = y. A positive pull
    attracts, a positive push repels; residual forces are -res. All are zero unless 0 < raw < m2.
    """

    raw: Tensor  # (...)
    active: Tensor  # (...) bool
    pull_ap: Tensor  # (...)
    push_an: Tensor
    push_pn: Tensor
    residuals: tuple[Tensor, Tensor, Tensor]  # forces on a, p, n off the edges, (..., D)
    forces: tuple[Tensor, Tensor, Tensor]  # (..., D)


def decompose(loss: EdgeEnergy, a: Tensor, p: Tensor, n: Tensor) -> Decomposition:
    """Split the forces on triplets (..., D) x3 along their edges. Source: Karaman 2021, Sec. 3.1, corrected."""
    raw, by = edge_gradient(loss, Edges.of(a, p, n))
    active = (raw > 0) & (raw < loss.m2)
    by = Edges(*(g.where(active, 0.0) for g in by))
    pull_ap, push_an, push_pn = by.ap, -by.an, -by.pn
    residuals = [-2 * g[..., None] * x for g, x in ((by.aa, a), (by.pp, p), (by.nn, n))]
    along_ap, along_an, along_pn = (
        strength[..., None] * direction(x, y) for strength, x, y in ((pull_ap, a, p), (push_an, a, n), (push_pn, p, n))
    )
    return Decomposition(
        raw,
        active,
        pull_ap,
        push_an,
        push_pn,
        (residuals[0], residuals[1], residuals[2]),
        (
            -along_ap + along_an + residuals[0],
            along_ap + along_pn + residuals[1],
            -along_an - along_pn + residuals[2],
        ),
    )


def direction(x: Tensor, y: Tensor) -> Tensor:
    """u_xy = (x - y) / |x - y|, shapes (..., D); 0 where x = y."""
    length = distance(x, y)[..., None]
    return torch.where(length > 0, (x - y) / length.where(length > 0, 1.0), 0.0)


@dataclass(frozen=True)
class Field:
    """What one point of the triplet, the probe, would feel at given places while the other two stay."""

    raw: Tensor  # (...) energy before the clamp
    energy: Tensor  # (...) clamped energy
    force: Tensor  # (..., D) force on the probe
    active: Tensor  # (...) bool: 0 < raw < m2, the in-loss-miner region


VERTICES = {"anchor": "a", "positive": "p", "negative": "n"}


def probe_field(loss: EdgeEnergy, a: Tensor, p: Tensor, n: Tensor, *, probe: Probe = "negative", at: Tensor) -> Field:
    """Put the probe at every place of `at` (..., D) while the other two points, (D,), stay.

    One forward and one backward pass for all places. Raises ValueError for an unknown probe.
    """
    if probe not in VERTICES:
        raise ValueError(f"probe must be anchor, positive or negative, got {probe!r}")
    vertex = VERTICES[probe]
    fixed = {v: x for v, x in zip("apn", (a, p, n), strict=True) if v != vertex}
    away = {other: at - x for other, x in fixed.items()}
    lengths = {other: torch.linalg.vector_norm(vector, dim=-1) for other, vector in away.items()}
    first, second = fixed
    known = {first + second: distance(*fixed.values())} | {2 * v: x.square().sum(-1) for v, x in fixed.items()}
    with torch.enable_grad():
        leaves = {"".join(sorted(vertex + other, key="apn".index)): length.clone() for other, length in lengths.items()}
        leaves[2 * vertex] = at.square().sum(-1)
        for leaf in leaves.values():
            leaf.requires_grad_()
        table = known | leaves
        raw = loss.raw_of(Triplet(table.__getitem__, lambda v: table[2 * v], loss.floor)).expand(at.shape[:-1])
        active = (raw > 0) & (raw < loss.m2)
        slopes = torch.autograd.grad(
            raw, list(leaves.values()), active.to(raw.dtype), allow_unused=True, materialize_grads=True
        )
    raw = raw.detach()
    force = -2 * slopes[2][..., None] * at
    for other, slope in zip(fixed, slopes, strict=False):
        safe = lengths[other].where(lengths[other] > 0, 1.0)
        force = force - (slope / safe)[..., None] * away[other]
    return Field(raw, raw.clamp(0.0, loss.m2), force, active)


def scan(
    loss: EdgeEnergy, a: Tensor, p: Tensor, n: Tensor, *, probe: Probe = "negative", x: Tensor, y: Tensor
) -> Field:
    """`probe_field` over the grid x (W,) times y (H,) of the plane: rows are y, columns are x."""
    grid = torch.stack(torch.meshgrid(x, y, indexing="xy"), dim=-1)
    return probe_field(loss, a, p, n, probe=probe, at=grid)
