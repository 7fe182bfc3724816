"""All that a view of one triplet needs, in one pass through the loss: field, forces along the edges, laws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from dmlcore.geometry.field import VERTICES, EdgeEnergy, Edges, Probe, edge_gradient

Array = NDArray[np.float64]
EDGES = ("ap", "an", "pn")


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
    place = dict(zip("apn", points, strict=True))
    own = {e: float(np.hypot(*(place[e[0]] - place[e[1]]))) for e in EDGES} | {2 * v: x @ x for v, x in place.items()}
    m, k = len(at), len(reach)
    table = {name: np.full(m + 1 + 3 * k, value) for name, value in own.items()}
    touching = {e: at - place[e.replace(vertex, "")] for e in EDGES if vertex in e}
    for edge, away in touching.items():
        table[edge][:m] = np.hypot(away[:, 0], away[:, 1])
    table[2 * vertex][:m] = np.einsum("ij,ij->i", at, at)
    for i, edge in enumerate(EDGES):
        table[edge][m + 1 + i * k : m + 1 + (i + 1) * k] = reach

    gradient = edge_gradient(loss, Edges(*(torch.from_numpy(table[name]) for name in Edges._fields)))
    raw, by = gradient[0].numpy(), dict(zip(Edges._fields, (g.numpy() for g in gradient[1]), strict=True))
    active = (raw[: m + 1] > 0) & (raw[: m + 1] < loss.m2)
    slope = {name: np.where(active, g[: m + 1], 0.0) for name, g in by.items()}

    force = -2 * slope[2 * vertex][:m, None] * at
    for edge, away in touching.items():
        length = table[edge][:m]
        force -= np.divide(slope[edge][:m], length, out=np.zeros(m), where=length > 0)[:, None] * away

    sign = {"ap": 1.0, "an": -1.0, "pn": -1.0}
    strengths = {e: sign[e] * float(slope[e][m]) + 0.0 for e in EDGES}
    residuals = np.stack([-2 * slope[2 * v][m] * x for v, x in place.items()])
    forces = dict(zip("apn", residuals.copy(), strict=True))
    for e in EDGES:
        if own[e] > 0:
            along = slope[e][m] * (place[e[0]] - place[e[1]]) / own[e]
            forces[e[0]] -= along
            forces[e[1]] += along
    curves = np.stack([sign[e] * by[e][m + 1 + i * k : m + 1 + (i + 1) * k] for i, e in enumerate(EDGES)])
    return Snapshot(
        float(raw[m]),
        bool(active[m]),
        {e: own[e] for e in EDGES},
        strengths,
        residuals + 0.0,
        np.stack(list(forces.values())) + 0.0,  # + 0.0 makes a zero of -0
        raw[:m],
        force,
        active[:m],
        curves,
    )
