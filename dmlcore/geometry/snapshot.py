"""All that a view of one triplet needs, in one pass through the loss: field, forces along the edges, laws."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from dmlcore.geometry.field import VERTICES, EdgeEnergy, Edges, Probe, edge_gradient

Array = NDArray[np.float64]
SIGNS = {"ap": 1.0, "an": -1.0, "pn": -1.0}  # a positive slope pulls along ap; a negative one pushes
EDGES = tuple(SIGNS)
TINY = 1e-300


@dataclass(frozen=True)
class Snapshot:
    """A triplet of the plane, the field its probe would feel at M places, and the laws along its edges."""

    raw: float  # of the triplet itself, before the clamp
    active: bool  # 0 < raw < m2
    lengths: dict[str, float]  # of the edges ap, an, pn
    strengths: dict[str, float]  # pull along ap, push along an and pn; 0 where inactive
    residuals: Array  # (3, 2) forces on a, p, n off the edges
    forces: Array  # (3, 2) resultants
    field_raw: Array  # (M,)
    field_force: Array  # (M, 2) on the probe
    field_active: NDArray[np.bool_]  # (M,)
    laws: Array  # (3, K) pull along ap, push along an and pn, before the clamp, as that edge's length alone varies


def snapshot(loss: EdgeEnergy, points: Array, *, probe: Probe, at: Array, reach: Array) -> Snapshot:
    """Evaluate the loss once for the triplet `points` (3, 2) = a, p, n; its probe at each of `at` (M, 2); laws at
    lengths `reach` (K,).

    The numbers are those of `decompose` and `probe_field`. For the distance-sensitive loss the laws are d^s and
    rho / d^r whatever the other edges; a coupled loss (ratio, lifted, moving, ...) has other curves for each triplet.
    """
    vertex = VERTICES[probe]
    place = dict(zip("apn", points.tolist(), strict=True))
    own = {e: math.dist(place[e[0]], place[e[1]]) for e in EDGES} | {
        2 * v: x * x + y * y for v, (x, y) in place.items()
    }
    m, k = len(at), len(reach)
    table = {name: np.full(m + 1 + 3 * k, value) for name, value in own.items()}
    x, y = at[:, 0], at[:, 1]
    away = {
        e: tuple(u - v for u, v in zip((x, y), place[e.replace(vertex, "")], strict=True)) for e in EDGES if vertex in e
    }
    for edge, (dx, dy) in away.items():
        np.sqrt(dx * dx + dy * dy, out=table[edge][:m])
    table[2 * vertex][:m] = x * x + y * y
    for i, edge in enumerate(EDGES):
        table[edge][m + 1 + i * k : m + 1 + (i + 1) * k] = reach

    gradient = edge_gradient(loss, Edges(*(torch.from_numpy(table[name]) for name in Edges._fields)))
    raw, by = gradient[0].numpy(), dict(zip(Edges._fields, (g.numpy() for g in gradient[1]), strict=True))
    active = (raw[: m + 1] > 0) & (raw[: m + 1] < loss.m2)

    outward = np.where(active[:m], -2 * by[2 * vertex][:m], 0.0)
    force = np.stack((outward * x, outward * y))
    for edge, (dx, dy) in away.items():
        length = table[edge][:m]
        along = np.where(active[:m] & (length > 0), by[edge][:m] / np.maximum(length, TINY), 0.0)
        force[0] -= along * dx
        force[1] -= along * dy

    hit = bool(active[m])
    slope = {name: float(g[m]) if hit else 0.0 for name, g in by.items()}
    residuals = {v: (-2 * slope[2 * v] * px, -2 * slope[2 * v] * py) for v, (px, py) in place.items()}
    forces = {v: list(residual) for v, residual in residuals.items()}
    for e in EDGES:
        for axis in (0, 1):
            part = slope[e] * (place[e[0]][axis] - place[e[1]][axis]) / own[e] if own[e] > 0 else 0.0
            forces[e[0]][axis] -= part
            forces[e[1]][axis] += part
    return Snapshot(
        raw=float(raw[m]),
        active=hit,
        lengths={e: own[e] for e in EDGES},
        strengths={e: SIGNS[e] * slope[e] + 0.0 for e in EDGES},
        residuals=np.array(list(residuals.values())) + 0.0,  # + 0.0 makes a zero of -0
        forces=np.array(list(forces.values())) + 0.0,
        field_raw=raw[:m],
        field_force=force.T,
        field_active=active[:m],
        laws=np.stack([SIGNS[e] * by[e][m + 1 + i * k : m + 1 + (i + 1) * k] for i, e in enumerate(EDGES)]),
    )
