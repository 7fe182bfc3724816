"""What a triplet loss does at many triplets at once: energies, slopes and forces, in one pass through the loss.

A triplet loss sees three edge lengths and three squared norms, so its derivatives by these six numbers give the force
on each of the three points x, in any dimension:

    F_x = -2 dE/d|x|^2 x - sum over its edges of dE/d|x - y| (x - y) / |x - y|.

Fields, comparisons, spheres, pair weights, failures, errata and exports all read this table. `forces`, automatic
differentiation by the points, is the definition that it is tested against.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dmlcore.geometry.forces import EdgeEnergy, Probe
from dmlcore.geometry.triplet import Triplet, distance
from dmlcore.typing import Bools, Floats

PROBES: tuple[Probe, Probe, Probe] = ("anchor", "positive", "negative")
ENDS = ((0, 1), (0, 2), (1, 2))  # of the edges ap, an, pn
SIGNS = (1.0, -1.0, -1.0)  # a positive slope pulls along ap; a negative one pushes along an and pn
SWAPPED = [0, 2, 1, 4, 3, 5]  # which of the six numbers of (a, p, n) are those of (p, a, n)
CHUNK = 1 << 14  # triplets at once: what the pass holds stays small


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


class Sides(NamedTuple):
    """Triplets by their points (D, ...), edges x - y (D, ...) and edge lengths (...): coordinates come first.

    A row of x and one of y is several times faster than pairs.
    """

    points: Sequence[Floats]
    edges: Sequence[Floats]
    lengths: Sequence[Floats]

    @classmethod
    def of(cls, points: Sequence[Floats]) -> Sides:
        """Of three points (D, ...), which broadcast."""
        edges = [points[i] - points[j] for i, j in ENDS]
        return cls(points, edges, [np.sqrt(_square(edge)) for edge in edges])

    def fill(self, numbers: Floats) -> None:
        """Write edge lengths and squared norms into the rows of (6, ...)."""
        for row, values in enumerate((*self.lengths, *map(_square, self.points))):
            numbers[row] = values


@dataclass(frozen=True, eq=False)
class FieldTable:
    """Triplets (...) of points (..., D) under a loss; forces and strengths are 0 where it is not active."""

    raw: Tensor  # (...) energy before the clamp
    energy: Tensor  # (...) as it is read: clamped, unless asked otherwise
    active: Tensor  # (...) bool: 0 < raw < m2, in some order; everywhere if not clamped
    orders: Sequence[Tensor]  # (...) each: raw of the loss itself, of (a, p, n) and, for both orders, of (p, a, n)
    probe: Probe  # whose force is `force`
    sides: Sides
    slopes: Sequence[Floats]  # (...) x6: derivative of the energy by edge lengths and squared norms
    tangential: bool = False  # whether forces are their parts along the sphere about the origin

    @cached_property
    def force(self) -> Tensor:
        """(..., D) on the probe."""
        return self.on(self.probe)

    @property
    def forces(self) -> tuple[Tensor, Tensor, Tensor]:
        """(..., D) on anchor, positive, negative."""
        a, p, n = map(self.on, PROBES)
        return a, p, n

    @property
    def residuals(self) -> tuple[Tensor, Tensor, Tensor]:
        """The parts of the forces off the edges, along the points' own vectors."""
        a, p, n = (_last(self._residual(i)) for i in range(3))
        return a, p, n

    @property
    def strengths(self) -> tuple[Tensor, Tensor, Tensor]:
        """Pull along ap, push along an and pn, (...) each: positive attracts, repels, repels."""
        ap, an, pn = (torch.as_tensor(sign * self.slopes[k]) for k, sign in enumerate(SIGNS))
        return ap, an, pn

    def on(self, name: Probe) -> Tensor:
        """Force (..., D) on a point: minus the gradient of the energy; no edge of length 0 has a direction."""
        at = PROBES.index(name)
        total = self._residual(at)
        for k, (x, y) in enumerate(ENDS):
            if at in (x, y):
                length = self.sides.lengths[k]
                along = self.slopes[k] / (length + (length == 0)) * self.sides.edges[k]
                total = total - along if at == x else total + along
        if self.tangential:
            point = self.sides.points[at]
            unit = point / np.maximum(np.sqrt(_square(point)), 1e-12)
            total = total - (total * unit).sum(0) * unit
        return _last(total)

    def _residual(self, at: int) -> Floats:
        return (-2 * self.slopes[3 + at]) * self.sides.points[at]


def field_table(
    loss: EdgeEnergy,
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    probe: Probe = "negative",
    at: Tensor | None = None,
    clamp: bool = True,
    both_orders: bool = False,
    factor: float = 1.0,
    shift: float = 0.0,
) -> FieldTable:
    """Evaluate a loss at triplets, or at one whose probe stands at many places; the energy times factor, plus shift.

    Not `clamp`: raw energies, active everywhere. `both_orders`: summed over (a, p, n) and (p, a, n), each clamped by
    itself, as in a batch.

    Shapes: points (..., D) x3, which broadcast; at (..., D) stands in for the probe.
    Raises: ValueError for an unknown probe.
    Source: Karaman 2021, Sec. 3.1, corrected.

    Example:
        >>> import torch
        >>> from dmlcore import geometry, losses
        >>> a, p, n = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.25]])
        >>> field = geometry.field_table(losses.create("ranking", m=0.5), a, p, n, at=torch.stack((p, n)))
        >>> field.raw
        tensor([0.5000, 0.2500])
        >>> field.force
        tensor([[1., 0.],
                [0., 1.]])
    """
    if probe not in PROBES:
        raise ValueError(f"probe must be anchor, positive or negative, got {probe!r}")
    points = [anchor, positive, negative]
    if at is not None:
        points[PROBES.index(probe)] = at
    most = max(x.ndim for x in points)
    sides = Sides.of([_first(x[(None,) * (most - x.ndim)]) for x in points])
    shape = np.broadcast_shapes(*(x.shape for x in sides.lengths))
    numbers = np.empty((6, *shape), np.result_type(*sides.points))
    sides.fill(numbers)
    numbers = numbers.reshape(6, -1)
    if both_orders:
        numbers = np.concatenate((numbers, numbers[SWAPPED]), axis=1)
    raw, by = _one_pass(loss, numbers)
    orders, slopes = raw.reshape(-1, *shape), [g.reshape(-1, *shape) for g in by]
    active: Bools = (orders > 0) & (orders < loss.m2) if clamp else np.ones(orders.shape, bool)
    each = [np.where(active, g, 0.0) for g in slopes]
    energy = orders.clip(0.0, loss.m2) if clamp else orders
    return FieldTable(
        torch.as_tensor(factor * orders.sum(0) + shift),
        torch.as_tensor(factor * energy.sum(0) + shift),
        torch.as_tensor(active.any(0)),
        [torch.as_tensor(x) for x in orders],
        probe,
        sides,
        [factor * (each[k][0] + each[SWAPPED[k]][1] if both_orders else each[k][0]) for k in range(6)],
    )


def scan(
    loss: EdgeEnergy, a: Tensor, p: Tensor, n: Tensor, *, probe: Probe = "negative", x: Tensor, y: Tensor
) -> FieldTable:
    """`field_table` with the probe on the grid x (W,) times y (H,) of the plane: rows are y, columns are x."""
    return field_table(loss, a, p, n, probe=probe, at=grid(x, y))


def grid(x: Tensor, y: Tensor) -> Tensor:
    """The places (H, W, 2) of x (W,) times y (H,)."""
    return torch.stack(torch.meshgrid(x, y, indexing="xy"), dim=-1)


class Snapshot(NamedTuple):
    """A triplet, the field that its probe would feel at M places, and the laws along its edges."""

    field: FieldTable  # (M,)
    triplet: FieldTable  # ()
    laws: Floats  # (3, K) pull along ap, push along an and pn, before the clamp, as that edge's length alone varies


def snapshot(loss: EdgeEnergy, points: Floats, *, probe: Probe, at: Floats, reach: Floats) -> Snapshot:
    """All that a view of one triplet needs, in one pass through the loss.

    For the distance-sensitive loss the laws are d^s and rho / d^r whatever the other edges; a coupled loss (ratio,
    lifted, moving, ...) has other curves for each triplet.

    Shapes: points (3, D) = a, p, n; at (M, D), the places of the probe; reach (K,), the lengths of the laws. All are
    float64. The field comes in the order of `at`, the laws in that of `reach`.
    Raises: ValueError for an unknown probe.
    Source: Karaman 2021, Sec. 3.1, corrected.

    Example:
        >>> import numpy as np
        >>> from dmlcore import geometry, losses
        >>> loss, triplet = losses.create("ranking", m=0.5), np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.25]])
        >>> view = geometry.snapshot(loss, triplet, probe="negative", at=triplet, reach=np.array([1.0, 2.0]))
        >>> view.triplet.raw.item(), view.field.raw.tolist()
        (0.25, [1.5, 0.5, 0.25])
        >>> view.laws[:2]
        array([[1., 1.],
               [1., 1.]])
    """
    scanned, m, k = PROBES.index(probe), len(at), len(reach)
    # Columns of the one batch: the probe at each place, the triplet itself, the length of ap, of an, of pn.
    numbers = np.empty((6, m + 1 + 3 * k))
    laws = [slice(m + 1 + i * k, m + 1 + (i + 1) * k) for i in range(3)]
    own = Sides.of(list(points))
    own.fill(numbers[:, m])
    numbers[:, m + 1 :] = numbers[:, m, None]
    for i, law in enumerate(laws):
        numbers[i, law] = reach
    columns = [x[:, None] for x in points]
    columns[scanned] = np.ascontiguousarray(at.T)
    moved = Sides.of(columns)
    moved.fill(numbers[:, :m])
    raw, by = _one_pass(loss, numbers)

    def part(sides: Sides, where: slice | int) -> FieldTable:
        energy, m2 = np.asarray(raw[where]), loss.m2
        read = energy, np.minimum(np.maximum(energy, 0.0), m2), (energy > 0) & (energy < m2)
        given, clamped, active = map(torch.as_tensor, read)
        slopes = [np.where(read[2], slope[where], 0.0)[()] for slope in by]  # [()]: a scalar is faster than an array ()
        return FieldTable(given, clamped, active, (given,), probe, sides, slopes)

    curves = [sign * by[i][law] for i, (sign, law) in enumerate(zip(SIGNS, laws, strict=True))]
    return Snapshot(part(moved, slice(m)), part(own, m), np.stack(curves))


def _one_pass(loss: EdgeEnergy, numbers: Floats) -> tuple[Floats, list[Floats]]:
    """raw (N,) and its derivatives, six of (N,), from edge lengths and squared norms (6, N)."""
    if numbers.shape[1] > CHUNK:
        pieces = (_one_pass(loss, numbers[:, i : i + CHUNK]) for i in range(0, numbers.shape[1], CHUNK))
        energies, slopes = zip(*pieces, strict=True)
        return np.concatenate(energies), [np.concatenate(each) for each in zip(*slopes, strict=True)]
    raw, by = edge_gradient(loss, Edges(*map(torch.from_numpy, numbers)))
    return raw.numpy(), [g.numpy() for g in by]


def _first(points: Tensor) -> Floats:
    """(..., D) -> (D, ...)"""
    return np.ascontiguousarray(np.moveaxis(points.detach().numpy(), -1, 0))


def _last(vectors: Floats) -> Tensor:
    """(D, ...) -> (..., D)"""
    return torch.from_numpy(vectors if vectors.ndim == 1 else vectors.transpose(*range(1, vectors.ndim), 0))


def _square(vectors: Floats) -> Floats:
    """|v|^2 of vectors, (D, ...) -> (...)."""
    first, *others = vectors
    total: Floats = first * first
    for x in others:
        total = total + x * x
    return total
