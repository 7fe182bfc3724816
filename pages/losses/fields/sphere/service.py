"""WebSocket service of the Sphere page: energies and forces on the circle and the unit sphere.

Arrays for the sphere: shade, uint8 (rows, columns), over latitude -90..90 and longitude -180..180, ends included;
active, packed bits; corners of the boundaries, int16 (K, 3) / 32767; nodes, int16 (M, 3) / 32767, and arrows, int8 (M,
3), of the tangential force. Arrays for the circle: ring, uint8 (RING,); active, packed bits; whirl, int8 (WHIRL,), the
tangential force. On request, the circle also has the map of theta_p - theta_a (columns) by theta_n - theta_a (rows),
-180..180, with its lines as uint16.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

import numpy as np
import torch
from starlette.routing import BaseRoute
from torch import Tensor

from dmlcore import losses
from dmlcore.figures.sphere_arrays import colour_scale, steady_lines
from dmlcore.geometry import Probe, distance
from dmlcore.geometry.boundary import Lines
from dmlcore.geometry.sphere import (
    angle_map,
    central_angle,
    fibonacci_sphere,
    on_circle,
    on_sphere,
    raw_on_sphere,
    scan_sphere,
    sphere_forces,
)
from dmlcore.typing import Arrays, Bytes
from pages.losses.fields.sphere.state import SphereScene
from pages.shared.plane.state import POINTS
from pages.shared.server import wire
from pages.shared.server.websocket import socket_route
from pages.shared.server.wire import number, pack

Header = dict[str, Any]

COARSE, FINE = 91, 181  # number of latitudes in the grid during a drag, and otherwise
RING, WHIRL, MAP = 720, 36, 145  # nodes on the circle, arrows along the circle, nodes per side of the angle map
ARROWS = 360  # number of arrows, distributed evenly over the sphere
BANDS = 8  # the map has BANDS - 1 equal-energy lines, which divide the scale into BANDS bands


def answer(request: dict[str, Any]) -> bytes:
    """Return the surface and the triplet's values for request["scene"].

    "fine" requests the fine grid used when no drag is in progress, "map" the angle map of the circle.
    """
    scene = SphereScene.of(request.get("scene"))
    loss = scene.module()
    scale, reference = _scales(scene.on, scene.probe, scene.loss, tuple(scene.hyper.items()))
    header: Header = {
        "id": wire.identity(request),
        "on": scene.on,
        "scale": scale,
        "link": urlencode(scene.to_query(), safe=","),
    } | readout(scene)
    if scene.on == "sphere":
        more, arrays = _sphere(scene, loss, scale, reference, FINE if request.get("fine") is True else COARSE)
    else:
        more, arrays = _circle(scene, loss, scale, reference, request.get("map") is True)
    return pack(header | more, arrays)


def unit(scene: SphereScene, name: str) -> Tensor:
    """Return the unit vector of a point of the triplet: shape (2,) on the circle, (3,) on the sphere."""
    longitude, latitude = torch.deg2rad(torch.tensor(getattr(scene, name), dtype=torch.float64))
    return on_circle(longitude) if scene.on == "circle" else on_sphere(longitude, latitude)


def readout(scene: SphereScene) -> Header:
    """Return the values of the triplet: energies, angles in degrees, distances, tangential and radial forces."""
    loss = scene.module()
    points = {name[0]: unit(scene, name) for name in POINTS}
    a, p, n = points.values()
    raw, energy = float(loss.raw(a, p, n)), float(loss.clamped(a, p, n))
    forces = sphere_forces(loss, a, p, n)
    pairs = {pair: (points[pair[0]], points[pair[1]]) for pair in ("ap", "an", "pn")}
    return {
        "raw": number(raw),
        "energy": number(energy),
        "m2": number(loss.m2),
        "hit": 0 < raw < loss.m2,
        "points": [x.tolist() for x in points.values()],
        "tangential": [(f + 0.0).tolist() for f in forces.tangential],  # + 0.0 turns -0 into 0
        "radial": [float(f) + 0.0 for f in forces.radial],
        "angles": {k: math.degrees(float(central_angle(*xy))) for k, xy in pairs.items()},
        "edges": {k: float(distance(*xy)) for k, xy in pairs.items()},
    }


def _sphere(
    scene: SphereScene, loss: losses.TripletLoss, scale: float, reference: float, rows: int
) -> tuple[Header, Arrays]:
    columns = 2 * rows - 1
    latitude = torch.linspace(-math.pi / 2, math.pi / 2, rows, dtype=torch.float64)
    longitude = torch.linspace(-math.pi, math.pi, columns, dtype=torch.float64)
    points = [unit(scene, name) for name in POINTS]
    raw = raw_on_sphere(loss, *points, probe=scene.probe, nodes=on_sphere(longitude, latitude[:, None]))
    nodes = fibonacci_sphere(ARROWS)
    field = scan_sphere(loss, *points, probe=scene.probe, nodes=nodes)
    outer, inner = _boundaries(longitude, latitude, raw, loss.m2, scale)
    corners = [on_sphere(*torch.from_numpy(line).T).numpy() for line in (*outer, *inner)]
    header = {"rows": rows, "columns": columns, "outer": [len(x) for x in outer], "inner": [len(x) for x in inner]}
    return header, {
        "shade": _shade(raw, loss.m2, scale),
        "active": _active(raw, loss.m2),
        "nodes": np.rint(32767 * nodes.numpy()).astype(np.int16),
        "arrows": wire.arrows(field.tangential.numpy(), reference),
        "corners": np.rint(32767 * np.concatenate(corners or [np.empty((0, 3))])).astype(np.int16),
    }


def _circle(
    scene: SphereScene, loss: losses.TripletLoss, scale: float, reference: float, with_map: bool
) -> tuple[Header, Arrays]:
    points = [unit(scene, name) for name in POINTS]
    angle = torch.arange(RING, dtype=torch.float64) * (2 * math.pi / RING)
    field = scan_sphere(loss, *points, probe=scene.probe, nodes=on_circle(angle))
    forward = on_circle(angle + math.pi / 2)  # unit tangent in the direction of increasing angle
    whirl = (field.tangential * forward).sum(-1)[:: RING // WHIRL]
    arrays: Arrays = {
        "ring": _shade(field.raw, loss.m2, scale),
        "active": _active(field.raw, loss.m2),
        "whirl": wire.arrows(whirl[:, None].numpy(), reference)[:, 0],
    }
    if not with_map:
        return {}, arrays
    axis = torch.linspace(-math.pi, math.pi, MAP, dtype=torch.float64)
    raw = angle_map(loss, axis, axis)
    outer, inner = _boundaries(axis, axis, raw, loss.m2, scale)
    levels = [scale * k / BANDS for k in range(1, BANDS) if scale * k / BANDS < loss.m2]
    bands = [line for level in levels for line in steady_lines(axis, axis, raw, level, scale)]
    header = {"outer": [len(x) for x in outer], "inner": [len(x) for x in inner], "bands": [len(x) for x in bands]}
    return {"map": header | {"n": MAP}}, arrays | {
        "map_shade": _shade(raw, loss.m2, scale),
        "map_active": _active(raw, loss.m2),
        "map_lines": wire.over_view([*outer, *inner, *bands], (0.0, 0.0, math.pi)),
    }


def _boundaries(x: Tensor, y: Tensor, raw: Tensor, m2: float, scale: float) -> tuple[Lines, Lines]:
    return steady_lines(x, y, raw, 0.0, scale), steady_lines(x, y, raw, m2, scale) if math.isfinite(m2) else []


def _shade(raw: Tensor, m2: float, scale: float) -> Bytes:
    return wire.shares(raw.clamp(0.0, m2).numpy() / scale)


def _active(raw: Tensor, m2: float) -> Bytes:
    return np.packbits(((raw > 0) & (raw < m2)).numpy())


@lru_cache(maxsize=256)
def _scales(on: str, probe: Probe, name: str, hyper: tuple[tuple[str, float | str], ...]) -> tuple[float, float]:
    return colour_scale(losses.create(name, **dict(hyper)), probe, 2 if on == "circle" else 3)


ROUTES: list[BaseRoute] = [
    socket_route("/api/sphere", answer, heavy=lambda request: request.get("fine") is True or request.get("map") is True)
]
