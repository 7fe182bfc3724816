"""What a triplet loss does at many triplets at once: energies, slopes and forces, in one pass through the loss.

A triplet loss sees three edge lengths and three squared norms, so its derivatives by these six numbers give the force
on each of the three points x, in any dimension:

    F_x = -2 dE/d|x|^2 x - sum over its edges of dE/d|x - y| (x - y) / |x - y|.

Fields, comparisons, spheres, failures and exports read this table; pair weights read `edge_gradient`, as their triplets
are given by lengths. `forces`, automatic differentiation by the points, is the definition that both are tested against.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dmlcore.geometry.forces import EdgeEnergy, Probe
from dmlcore.geometry.triplet import ENDS, Edges, Sides, Triplet, squared_norms
from dmlcore.typing import Bools, Floats

Read = tuple[Floats, Floats, Bools]  # raw, energy, active
PROBES: tuple[Probe, Probe, Probe] = ("anchor", "positive", "negative")
TOUCHES = (*ENDS, (0,), (1,), (2,))  # the points that each of the six numbers depends on
SIGNS = (1.0, -1.0, -1.0)  # a positive slope pulls along ap; a negative one pushes along an and pn
SWAPPED = [0, 2, 1, 4, 3, 5]  # which of the six numbers of (a, p, n) are those of (p, a, n)
CHUNK = 1 << 14  # triplets at once: what the pass holds stays small


def edge_gradient(loss: EdgeEnergy, edges: Edges) -> tuple[Tensor, Edges]:
    """raw (...) and its derivative by every edge length and squared norm, six tensors (...); one pass for all.

    The derivative is that of raw everywhere, whether the clamp passes it on or not.
    """
    raw, derivatives = _partial(loss, edges, range(6))
    return raw, Edges(*(torch.zeros_like(x) if d is None else d for x, d in zip(edges, derivatives, strict=True)))


def _partial(loss: EdgeEnergy, edges: Sequence[Tensor], by: Sequence[int]) -> tuple[Tensor, Sequence[Tensor | None]]:
    """raw (...) and its derivatives by some of the six numbers; None where it does not depend on one."""
    with torch.enable_grad():
        leaves = Edges(*(x.detach().requires_grad_(k in by) for k, x in enumerate(edges)))
        raw = loss.raw_of(
            Triplet(lambda pair: getattr(leaves, pair), lambda vertex: getattr(leaves, 2 * vertex), loss.floor)
        )
        if not raw.requires_grad:
            return raw, [None] * len(by)
        # Of the sum: grad() of many numbers compares shapes with SymPy, which loads for a second.
        return raw.detach(), torch.autograd.grad(raw.sum(), [leaves[k] for k in by], allow_unused=True)


@dataclass(frozen=True, eq=False)
class FieldTable:
    """Triplets (...) of points (..., D) under a loss; forces and strengths are 0 where it is not active."""

    raw: Tensor  # (...) energy before the clamp
    energy: Tensor  # (...) as it is read: clamped, unless asked otherwise
    active: Tensor  # (...) bool: 0 < raw < m2, in some order; everywhere if not clamped
    orders: Sequence[Tensor]  # (...) each: raw of the loss itself, of (a, p, n) and, for both orders, of (p, a, n)
    probe: Probe  # whose force is `force`
    sides: Sides
    slopes: Mapping[int, Floats]  # (...) each: derivative of the energy by those of the six numbers that it depends on
    scans: bool = False  # whether it knows the slopes by what moves with the probe alone
    tangential: bool = False  # whether forces are their parts along the sphere about the origin

    @cached_property
    def force(self) -> Tensor:
        """(..., D) on the probe."""
        return self.on(self.probe)

    @property
    def size(self) -> Tensor:
        """(...) length of `force`."""
        return torch.as_tensor(np.sqrt(squared_norms(_first(self.force))))

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
        none = torch.zeros_like(self.raw)
        ap, an, pn = (torch.as_tensor(x * self.slopes[k]) if k in self.slopes else none for k, x in enumerate(SIGNS))
        return ap, an, pn

    def on(self, name: Probe) -> Tensor:
        """Force (..., D) on a point: minus the gradient of the energy; no edge of length 0 has a direction.

        Raises ValueError in a scan, which holds what moves with its probe, for another point.
        """
        at = PROBES.index(name)
        if self.scans and name != self.probe:
            raise ValueError(f"a scan holds the force on its {self.probe} alone, not on the {name}")
        total = self._residual(at)
        for k, (x, y) in enumerate(ENDS):
            if at in (x, y) and k in self.slopes:
                length = self.sides.lengths[k]
                along = self.slopes[k] / (length + (length == 0)) * self.sides.edges[k]
                total = total - along if at == x else total + along
        if self.tangential:
            point = self.sides.points[at]
            unit = point / np.maximum(np.sqrt(squared_norms(point)), 1e-12)
            total = total - (total * unit).sum(0) * unit
        return _last(total)

    def _residual(self, at: int) -> Floats:
        point = self.sides.points[at]
        if 3 + at in self.slopes:
            return (-2 * self.slopes[3 + at]) * point
        return np.zeros((len(point), *self.raw.shape), point.dtype)


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
    scanned, points = PROBES.index(probe), [anchor, positive, negative]
    if at is not None:
        points[scanned] = at
    most = max(x.ndim for x in points)
    sides = Sides.of([_first(x[(None,) * (most - x.ndim)]) for x in points])
    shape = np.broadcast_shapes(*(x.shape for x in sides.lengths))
    # Of a scan only what moves with the probe is differentiated; the rest stays one number.
    by = [k for k in range(6) if at is None or scanned in TOUCHES[k]]
    numbers = [
        x.reshape(-1) if x.shape == shape or (k not in by and x.size == 1) else np.broadcast_to(x, shape).flatten()
        for k, x in enumerate(sides.numbers)
    ]
    reads: list[Read] = []
    slopes: dict[int, Floats] = {}
    for order in (range(6), SWAPPED)[: 1 + both_orders]:
        places = [j for j in range(6) if order[j] in by]
        raw, all_slopes = _one_pass(loss, [numbers[k] for k in order], places)
        raw = raw.reshape(shape)
        reads.append(_clamped(raw, loss.m2) if clamp else (raw, raw, np.ones(shape, bool)))
        for j, slope in zip(places, all_slopes, strict=True):
            if slope is not None:
                each = np.where(reads[-1][2], slope.reshape(shape), 0.0)
                slopes[order[j]] = slopes[order[j]] + each if order[j] in slopes else each
    orders, energies, windows = zip(*reads, strict=True)
    raw, energy = (reduce(np.add, x) for x in (orders, energies))
    if (factor, shift) != (1.0, 0.0):
        raw, energy, slopes = factor * raw + shift, factor * energy + shift, {k: factor * x for k, x in slopes.items()}
    active = reduce(np.logical_or, windows)
    return _table((raw, energy, active), orders, probe, sides, slopes, scans=at is not None)


def scan(
    loss: EdgeEnergy, a: Tensor, p: Tensor, n: Tensor, *, probe: Probe = "negative", x: Tensor, y: Tensor
) -> FieldTable:
    """`field_table` with the probe on the grid x (W,) times y (H,) of the plane: rows are y, columns are x."""
    return field_table(loss, a, p, n, probe=probe, at=grid(x, y))


def grid(x: Tensor, y: Tensor) -> Tensor:
    """The places (H, W, 2) of x (W,) times y (H,)."""
    return torch.stack(torch.meshgrid(x, y, indexing="xy"), dim=-1)


class TripletView(NamedTuple):
    """A triplet, the field that its probe would feel at M places, and the laws along its edges."""

    field: FieldTable  # (M,)
    triplet: FieldTable  # ()
    laws: Floats  # (3, K) pull along ap, push along an and pn, before the clamp, as that edge's length alone varies


def snapshot(loss: EdgeEnergy, points: Floats, *, probe: Probe, at: Floats, reach: Floats) -> TripletView:
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
    laws = [slice(m + 1 + i * k, m + 1 + (i + 1) * k) for i in range(3)]
    own = Sides.of(list(points))
    numbers = np.empty((6, m + 1 + 3 * k))
    numbers[:] = np.array(own.numbers)[:, None]
    # Of the field only what moves with the probe differs from the triplet itself.
    places, edges, lengths = np.ascontiguousarray(at.T), list(own.edges), list(own.lengths)
    for i, (x, y) in enumerate(ENDS):
        if scanned in (x, y):
            edges[i] = places - points[y][:, None] if x == scanned else points[x][:, None] - places
            numbers[i, :m] = lengths[i] = np.sqrt(squared_norms(edges[i]))
    numbers[3 + scanned, :m] = squared_norms(places)
    for i, law in enumerate(laws):
        numbers[i, law] = reach
    raw, by = _one_pass(loss, list(numbers), range(6))
    known = [(i, slope) for i, slope in enumerate(by) if slope is not None]
    read, own_read = _clamped(raw[:m], loss.m2), _clamped(raw[m], loss.m2)
    moved = Sides([places if i == scanned else x for i, x in enumerate(points)], edges, lengths)
    felt = {i: np.where(read[2], slope[:m], 0.0) for i, slope in known if scanned in TOUCHES[i]}
    own_felt: dict[int, Any] = {i: slope[m] if own_read[2] else np.float64(0.0) for i, slope in known}
    curves = np.zeros((3, k))
    for i, slope in known:
        if i < 3:
            curves[i] = SIGNS[i] * slope[laws[i]]
    scanned_field = _table(read, read[:1], probe, moved, felt, scans=True)
    return TripletView(scanned_field, _table(own_read, own_read[:1], probe, own, own_felt), curves)


def _clamped(raw: Floats, m2: float) -> Read:
    return raw, np.minimum(np.maximum(raw, 0.0), m2), (raw > 0) & (raw < m2)


def _table(
    read: Read,
    orders: Sequence[Floats],
    probe: Probe,
    sides: Sides,
    slopes: Mapping[int, Floats],
    *,
    scans: bool = False,
) -> FieldTable:
    raw, energy, active = map(torch.as_tensor, read)
    return FieldTable(raw, energy, active, [torch.as_tensor(x) for x in orders], probe, sides, slopes, scans)


def _one_pass(loss: EdgeEnergy, numbers: Sequence[Floats], by: Sequence[int]) -> tuple[Floats, list[Floats | None]]:
    """raw (N,) and derivatives (N,) as `_partial`, from six numbers of (N,), or (1,) where all triplets share one."""
    size = max(map(len, numbers))
    if size > CHUNK:
        starts = range(0, size, CHUNK)
        parts = [_one_pass(loss, [x[i : i + CHUNK] if len(x) > 1 else x for x in numbers], by) for i in starts]
        columns = zip(*(slopes for _, slopes in parts), strict=True)
        slopes = [[part for part in column if part is not None] for column in columns]
        return np.concatenate([raw for raw, _ in parts]), [np.concatenate(x) if x else None for x in slopes]
    raw, all_slopes = _partial(loss, [torch.from_numpy(x) for x in numbers], by)
    return raw.expand(size).numpy(), [None if x is None else x.expand(size).numpy() for x in all_slopes]


def _first(points: Tensor) -> Floats:
    """(..., D) -> (D, ...)"""
    given = points.detach().numpy()
    return np.ascontiguousarray(given.transpose(-1, *range(given.ndim - 1)))


def _last(vectors: Floats) -> Tensor:
    """(D, ...) -> (..., D)"""
    return torch.from_numpy(vectors if vectors.ndim == 1 else vectors.transpose(*range(1, vectors.ndim), 0))
