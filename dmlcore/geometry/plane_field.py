"""All that a view of one triplet needs, in one pass through the loss: field, forces along the edges, laws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from dmlcore.geometry.forces import VERTICES, EdgeEnergy, Edges, Probe, edge_gradient
from dmlcore.typing import Bools, Floats

POINTS = "apn"
EDGES = ("ap", "an", "pn")
# Rows are points, columns are edges: INCIDENCE.T @ points = (a - p, a - n, p - n).
INCIDENCE = np.array([[1.0, 1.0, 0.0], [-1.0, 0.0, 1.0], [0.0, -1.0, -1.0]])
SIGNS = np.array([1.0, -1.0, -1.0])  # a positive slope pulls along ap; a negative one pushes along an and pn
# For each point: its two edges, and the point at the other end of each.
NEIGHBOURS: dict[Probe, tuple[tuple[int, int], ...]] = {
    "anchor": ((0, 1), (1, 2)),
    "positive": ((0, 0), (2, 2)),
    "negative": ((1, 0), (2, 1)),
}
TINY = 1e-300  # in place of a length of 0, which has no direction


@dataclass(frozen=True)
class PlaneSnapshot:
    """A triplet of the plane, the field its probe would feel at M places, and the laws along its edges."""

    raw: float  # of the triplet itself, before the clamp
    active: bool  # 0 < raw < m2
    lengths: dict[str, float]  # of the edges ap, an, pn
    strengths: dict[str, float]  # pull along ap, push along an and pn; 0 where inactive
    residuals: Floats  # (3, 2) forces on a, p, n off the edges
    forces: Floats  # (3, 2) resultants
    field_raw: Floats  # (M,)
    field_force: Floats  # (M, 2) on the probe
    field_active: Bools  # (M,)
    laws: Floats  # (3, K) pull along ap, push along an and pn, before the clamp, as that edge's length alone varies


class SnapshotBatch(NamedTuple):
    """Where the M + 1 + 3 K triplets of a snapshot lie in the one batch that goes through the loss."""

    field: slice  # M: the probe at each place, the other two points where they are
    triplet: int  # 1: all three where they are
    laws: tuple[slice, slice, slice]  # K each: the length of ap, of an, of pn varies, all else stays
    size: int

    @classmethod
    def of(cls, m: int, k: int) -> SnapshotBatch:
        """The field's M triplets, the triplet itself, K for each edge."""
        ap, an, pn, end = (m + 1 + i * k for i in range(4))
        return cls(slice(0, m), m, (slice(ap, an), slice(an, pn), slice(pn, end)), end)


def snapshot(loss: EdgeEnergy, points: Floats, *, probe: Probe, at: Floats, reach: Floats) -> PlaneSnapshot:
    """Evaluate the loss once for a triplet, for its probe elsewhere and for other lengths of its edges.

    The numbers are those of `decompose` and `probe_field`. For the distance-sensitive loss the laws are d^s and
    rho / d^r whatever the other edges; a coupled loss (ratio, lifted, moving, ...) has other curves for each triplet.

    Shapes: points (3, 2) = a, p, n; at (M, 2), the places of the probe; reach (K,), the lengths of the laws. All are
    float64, in distance units of the plane. The field comes in the order of `at`, the laws in that of `reach`.
    Raises: KeyError for an unknown probe.
    Source: Karaman 2021, Sec. 3.1, corrected.

    Example:
        >>> import numpy as np
        >>> from dmlcore import geometry, losses
        >>> loss, triplet = losses.create("ranking", m=0.5), np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.25]])
        >>> view = geometry.snapshot(loss, triplet, probe="negative", at=triplet, reach=np.array([1.0, 2.0]))
        >>> view.raw, view.lengths["an"], view.strengths["ap"]
        (0.25, 1.25, 1.0)
        >>> view.field_raw
        array([1.5 , 0.5 , 0.25])
        >>> view.laws[:2]
        array([[1., 1.],
               [1., 1.]])
    """
    scanned = POINTS.index(VERTICES[probe])
    batch = SnapshotBatch.of(len(at), len(reach))
    edges = INCIDENCE.T @ points
    lengths = _length(edges.T)
    places = np.ascontiguousarray(at.T)  # (2, M): a row of x and one of y is several times faster than M pairs
    offsets = {i: places - points[j, :, None] for i, j in NEIGHBOURS[probe]}

    # Every triplet starts as the one given; then the probe moves, or one length varies.
    inputs = np.empty((6, batch.size))  # rows as in `Edges`
    inputs[:] = np.concatenate((lengths, _square(points.T)))[:, None]
    for i, offset in offsets.items():
        inputs[i, batch.field] = _length(offset)
    inputs[3 + scanned, batch.field] = _square(places)
    for i, law in enumerate(batch.laws):
        inputs[i, law] = reach

    # One pass through the loss for all of them.
    energy, derivatives = edge_gradient(loss, Edges(*map(torch.from_numpy, inputs)))
    raw, slopes = energy.numpy(), [derivative.numpy() for derivative in derivatives]
    active = (raw > 0) & (raw < loss.m2)

    # Force on the probe x: -2 x dE/d|x|^2 - sum over its edges of dE/dd (x - y) / d, 0 unless active.
    here = batch.field
    feels = active[here]
    field_force = np.where(feels, -2 * slopes[3 + scanned][here], 0.0) * places
    for i, offset in offsets.items():
        length = inputs[i, here]
        field_force -= np.where(feels & (length > 0), slopes[i][here] / np.maximum(length, TINY), 0.0) * offset

    # The same for all three points of the triplet itself: each edge acts on both its ends.
    slope = np.array([derivative[batch.triplet] for derivative in slopes]) if active[batch.triplet] else np.zeros(6)
    by_length, by_square = slope[:3], slope[3:]
    residuals = -2 * by_square[:, None] * points
    forces = residuals - INCIDENCE @ (by_length[:, None] * edges / np.maximum(lengths, TINY)[:, None])
    return PlaneSnapshot(
        raw=float(raw[batch.triplet]),
        active=bool(active[batch.triplet]),
        lengths=dict(zip(EDGES, lengths.tolist(), strict=True)),
        strengths=dict(zip(EDGES, (SIGNS * by_length + 0.0).tolist(), strict=True)),
        residuals=residuals + 0.0,  # + 0.0 makes a zero of -0
        forces=forces + 0.0,
        field_raw=raw[here],
        field_force=field_force.T,
        field_active=feels,
        laws=np.stack([sign * slopes[i][law] for i, (sign, law) in enumerate(zip(SIGNS, batch.laws, strict=True))]),
    )


def _square(vectors: Floats) -> Floats:
    """|v|^2 of vectors in columns, (2, ...) -> (...)."""
    x, y = vectors
    squares: Floats = x * x + y * y
    return squares


def _length(vectors: Floats) -> Floats:
    """|v| of vectors in columns, (2, ...) -> (...)."""
    return np.sqrt(_square(vectors))
