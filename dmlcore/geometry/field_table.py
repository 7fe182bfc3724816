"""Energies, slopes and forces of a triplet loss at many triplets, computed in one pass through the loss.

A triplet loss depends on three edge lengths and three squared norms. Its derivatives with respect to these six numbers
give the force on each of the three points x, in any dimension:

    F_x = -2 dE/d|x|^2 x - sum over its edges of dE/d|x - y| (x - y) / |x - y|.

Force fields, comparisons, sphere views, failure analyses and exports use `FieldTable`. Pair weights use
`edge_gradient`, because their triplets are given by edge lengths. Both are tested against `forces`, which
differentiates with respect to the points.
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
# points (0 anchor, 1 positive, 2 negative) on which each edge length (ap, an, pn) and squared norm depends
TOUCHES = (*ENDS, (0,), (1,), (2,))
# factors that turn the slopes along ap, an and pn into the strengths of the pull and of both pushes
SIGNS = (1.0, -1.0, -1.0)
SWAPPED = [0, 2, 1, 4, 3, 5]  # permutation of (ap, an, pn, aa, pp, nn) that exchanges anchor and positive
CHUNK = 1 << 14  # maximum number of triplets per pass through the loss; limits memory


def edge_gradient(loss: EdgeEnergy, edges: Edges) -> tuple[Tensor, Edges]:
    """Compute the energy before the clamp (...) and its derivatives with respect to edge lengths and squared norms.

    Returns:
        The energy, and its six derivatives of shape (...). The derivatives ignore the clamp: they are not set to zero
        outside the clamp window.
    """
    raw, derivatives = _partial(loss, edges, range(6))
    return raw, Edges(*(torch.zeros_like(x) if d is None else d for x, d in zip(edges, derivatives, strict=True)))


def _partial(loss: EdgeEnergy, edges: Sequence[Tensor], by: Sequence[int]) -> tuple[Tensor, Sequence[Tensor | None]]:
    """Compute the energy before the clamp (...) and its derivatives with respect to the entries `by` of `edges`.

    `edges` holds the three edge lengths, then the three squared norms. A derivative is None if the energy does not
    depend on that entry.
    """
    with torch.enable_grad():
        leaves = Edges(*(x.detach().requires_grad_(k in by) for k, x in enumerate(edges)))
        raw = loss.raw_of(
            Triplet(lambda pair: getattr(leaves, pair), lambda vertex: getattr(leaves, 2 * vertex), loss.floor)
        )
        if not raw.requires_grad:
            return raw, [None] * len(by)
        # Differentiate the sum, because grad() of several outputs compares their shapes with SymPy, which is slow to
        # import (1 s).
        return raw.detach(), torch.autograd.grad(raw.sum(), [leaves[k] for k in by], allow_unused=True)


@dataclass(frozen=True, eq=False)
class FieldTable:
    """Energies, slopes and forces of a loss at triplets of points (..., D).

    Slopes are derivatives of the energy with respect to edge lengths and squared norms. Forces are 0 where the loss is
    not active.
    """

    raw: Tensor  # (...) energy before the clamp
    energy: Tensor  # (...) clamped energy, or the raw energy if the table was computed without a clamp
    active: Tensor  # (...) bool: 0 < raw < m2 in at least one order; True everywhere without a clamp
    # energies (...) before the clamp, of (a, p, n) and, if both orders were requested, of (p, a, n)
    orders: Sequence[Tensor]
    probe: Probe  # point whose force is `force`
    sides: Sides
    # derivatives (...) with respect to edge lengths and squared norms, keyed by index in (ap, an, pn, aa, pp, nn);
    # without entries for those that the energy does not depend on
    slopes: Mapping[int, Floats]
    # True if only the probe moves; slopes with respect to lengths and norms that do not depend on it are then missing
    scans: bool = False
    tangential: bool = False  # True if forces are projected on the tangent spaces of the sphere about the origin

    @cached_property
    def force(self) -> Tensor:
        """Force on the probe, shape (..., D)."""
        return self.on(self.probe)

    @property
    def size(self) -> Tensor:
        """Length of `force`, shape (...)."""
        return torch.as_tensor(np.sqrt(squared_norms(_first(self.force))))

    @property
    def forces(self) -> tuple[Tensor, Tensor, Tensor]:
        """Forces on anchor, positive and negative, each of shape (..., D)."""
        a, p, n = map(self.on, PROBES)
        return a, p, n

    @property
    def residuals(self) -> tuple[Tensor, Tensor, Tensor]:
        """Force components along the position vectors of the points, not along the edges; each has shape (..., D)."""
        a, p, n = (_last(self._residual(i)) for i in range(3))
        return a, p, n

    @property
    def strengths(self) -> tuple[Tensor, Tensor, Tensor]:
        """Pull along ap and push along an and pn, each of shape (...).

        A positive pull attracts, a positive push repels.
        """
        none = torch.zeros_like(self.raw)
        ap, an, pn = (torch.as_tensor(x * self.slopes[k]) if k in self.slopes else none for k, x in enumerate(SIGNS))
        return ap, an, pn

    def on(self, name: Probe) -> Tensor:
        """Return the force (..., D) on the point `name`, minus the gradient of the energy.

        Edges of length 0 exert no force.

        Raises:
            ValueError: If the table was computed for a moving probe and `name` is another point, whose force is
                unknown.
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
    """Evaluate a loss at triplets, or at one triplet whose probe is moved to many positions.

    Args:
        loss: Triplet loss as a function of edge lengths and squared norms.
        anchor: Anchors, shape (..., D).
        positive: Positives, shape (..., D).
        negative: Negatives, shape (..., D). The three shapes are broadcast together.
        probe: Point that `at` replaces and whose force is `FieldTable.force`.
        at: Positions of the probe, shape (..., D), or None to evaluate the triplets themselves.
        clamp: False to return energies without the clamp; every triplet then counts as active.
        both_orders: True to sum the energies of (a, p, n) and (p, a, n), each clamped separately, as a batch does.
        factor: Factor by which energies, slopes and forces are multiplied.
        shift: Constant that is added to the energy after multiplication.

    Returns:
        The energies, slopes and forces.

    Raises:
        ValueError: If the probe is unknown.

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

    Reference:
        Karaman 2021, Sec. 3.1, corrected.
    """
    if probe not in PROBES:
        raise ValueError(f"probe must be anchor, positive or negative, got {probe!r}")
    scanned, points = PROBES.index(probe), [anchor, positive, negative]
    if at is not None:
        points[scanned] = at
    most = max(x.ndim for x in points)
    sides = Sides.of([_first(x[(None,) * (most - x.ndim)]) for x in points])
    shape = np.broadcast_shapes(*(x.shape for x in sides.lengths))
    # If only the probe moves, differentiate only with respect to the lengths and norms that depend on it; the others
    # remain scalars.
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
    """Return the `field_table` (H, W) with the probe at each node of the grid with coordinates x (W,) and y (H,)."""
    return field_table(loss, a, p, n, probe=probe, at=grid(x, y))


def grid(x: Tensor, y: Tensor) -> Tensor:
    """Return the positions (H, W, 2) of all nodes of the grid with coordinates x (W,) and y (H,)."""
    return torch.stack(torch.meshgrid(x, y, indexing="xy"), dim=-1)


class TripletView(NamedTuple):
    """A triplet, the force field of its probe at M positions, and the strengths of pull and push by edge length."""

    field: FieldTable  # (M,)
    triplet: FieldTable  # ()
    # (3, K) force profiles, before the clamp: pull along ap and push along an and pn as functions of the edge length
    laws: Floats


def snapshot(loss: EdgeEnergy, points: Floats, *, probe: Probe, at: Floats, reach: Floats) -> TripletView:
    """Compute everything that a view of one triplet shows, in one pass through the loss.

    A force profile is the strength of the pull or push along one edge as a function of its length, with the other edges
    of the triplet fixed. The profiles of the distance-sensitive loss are d^s and rho / d^r, regardless of the other
    edges. For a loss that couples the edges (ratio, lifted, moving, ...) they depend on the triplet.

    Args:
        loss: Triplet loss as a function of edge lengths and squared norms.
        points: Anchor, positive and negative, shape (3, D), float64.
        probe: Point that is moved to the positions `at`.
        at: Positions of the probe, shape (M, D), float64.
        reach: Edge lengths at which the profiles are evaluated, shape (K,), float64.

    Returns:
        The force field in the order of `at`, the triplet itself, and the profiles in the order of `reach`.

    Raises:
        ValueError: If the probe is unknown.

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

    Reference:
        Karaman 2021, Sec. 3.1, corrected.
    """
    scanned, m, k = PROBES.index(probe), len(at), len(reach)
    # Order of the batch: the probe at each position, the triplet itself, then ap, an and pn varied over `reach`.
    laws = [slice(m + 1 + i * k, m + 1 + (i + 1) * k) for i in range(3)]
    own = Sides.of(list(points))
    numbers = np.empty((6, m + 1 + 3 * k))
    numbers[:] = np.array(own.numbers)[:, None]
    # Only the edge lengths and norms that depend on the probe differ between its positions.
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
    """Evaluate `_partial` in chunks of at most CHUNK triplets, and return its results for all N triplets.

    `numbers` holds six arrays of edge lengths and squared norms, each of shape (N,), or (1,) if all triplets share the
    value.
    """
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
    """Move the coordinate axis of points (..., D) to the front, shape (D, ...)."""
    given = points.detach().numpy()
    return np.ascontiguousarray(given.transpose(-1, *range(given.ndim - 1)))


def _last(vectors: Floats) -> Tensor:
    """Move the coordinate axis of vectors (D, ...) to the back, shape (..., D)."""
    return torch.from_numpy(vectors if vectors.ndim == 1 else vectors.transpose(*range(1, vectors.ndim), 0))
