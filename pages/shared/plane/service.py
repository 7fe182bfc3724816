"""WebSocket service that computes force fields of a triplet in the plane; the browser component draws them.

A response contains an array only if its layer is shown. The first row of an array is at the bottom of the view.

uint8: shade (n, n). int8: arrows (20, 20, 2). uint16, coordinates relative to the view: streams (S, K, 2); patches (K,
2), the rings around the active region, to be filled with the even-odd rule; corners (K, 2), the boundaries of the
active region; contours_at (K, 2), the contour lines. float32: laws (3, K), the values of pull_ap, push_an and push_pn;
cut (2, K), raw and clamped energy along the cut.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from starlette.routing import BaseRoute

from dmlcore.figures.scales import percentile, round_top
from dmlcore.geometry import FieldTable, snapshot
from dmlcore.geometry.boundary import Levels
from dmlcore.geometry.field_table import SIGNS
from dmlcore.geometry.streams import streamlets
from dmlcore.typing import Array
from pages.shared.plane.readout import service as readout
from pages.shared.plane.state import Scene
from pages.shared.server import wire
from pages.shared.server.websocket import socket_route
from pages.shared.server.wire import Request, number, pack
from pages.shared.server.worker_pool import WorkerPool
from pages.shared.state.untrusted import bounded, held, jsonable, numbers

SAMPLES = 96  # samples per force law
SHARES = np.arange(1, SAMPLES + 1) / SAMPLES
CUT = 160  # samples per cut
STILL = 1e-12  # forces with a smaller norm are treated as rounding errors
INLINE = 101  # grids with up to this many nodes per side are computed on the event loop (about 2 ms)
FINEST = 201


def answer(request: Request) -> bytes:
    """Return the force field of request["scene"] on a grid of up to FINEST nodes per side.

    With "hover" in the request, the response also holds loss and force at that position. request["scale"] and
    request["reference"] keep the scales of colour and arrows fixed during a drag. "settle" (the drag has ended) adds
    the URL query string and slower results (area, margins).
    """
    return render_scene(Scene.of(request.get("scene")), request)


def warm_up() -> None:
    """Compute one field, so that the first visitor's field is fast."""
    # one thread suffices to compute a force field, and training runs use separate processes
    torch.set_num_threads(1)
    answer({})


def render_scene(scene: Scene, request: Request, more: Mapping[str, Any] | None = None) -> bytes:
    """Return the response to `request` for a validated scene; `more` is added to the header."""
    identity = wire.identity(request)
    if "hover" in request:
        return pack({"id": identity, "hover": readout.place(scene, numbers(request["hover"], (0.0, 0.0)))}, {})
    n = int(bounded(request.get("n"), 2 * wire.ARROWS, FINEST, INLINE))
    settle = request.get("settle") is True
    header, arrays, active_places = _painted(scene, n, request, settle)
    header |= {"id": identity, "n": n, "view": scene.view}
    if settle:
        header["bring"] = None if header["hit"] else _nearest_active(scene, active_places)
        header |= {"query": scene.to_query(), "hyper": jsonable(scene.hyper)} | readout.describe_pair(scene, request)
    return pack(header | dict(more or {}), arrays)


def _painted(scene: Scene, n: int, request: Request, settle: bool) -> tuple[dict[str, Any], dict[str, Array], Array]:
    """Return the header, the arrays of the shown layers, and the grid nodes (K, 2) at which the loss is active."""
    x, y, places = _places(scene, n)
    points = np.array([scene.anchor, scene.positive, scene.negative])
    reach = _reach(points)
    loss = scene.module()
    field, triplet, laws = snapshot(loss, points, probe=scene.probe, at=places, reach=reach * SHARES)
    raw, energy, active = (x.numpy()[: n * n].reshape(n, n) for x in (field.raw, field.energy, field.active))
    force = field.force.numpy().T[:, : n * n].reshape(2, n, n)
    strength = np.sqrt(force[0] ** 2 + force[1] ** 2)
    shade = {"raw": raw, "force": strength}.get(scene.shade, energy)
    upper = loss.m2 if scene.shade == "energy" else math.inf
    scale = held(request.get("scale"), lambda: round_top(percentile(np.abs(shade)[active], 97), upper), settle)
    reference = held(request.get("reference"), lambda: round_top(percentile(strength[active], 50)), settle)
    levels = Levels(x, y, raw)
    outer, inner = (levels.lines(level) if level < math.inf else [] for level in (0.0, loss.m2))
    header = _triplet(scene, triplet) | {
        "scale": scale,
        "reference": reference,
        "reach": reach,
        "signed": scene.shade == "raw",
        "quiet": not active.any(),
        "flat": bool(active.any() and strength.max() < STILL),
        "outer": [len(line) for line in outer],
        "inner": [len(line) for line in inner],
    }
    arrays: dict[str, Array] = {"corners": wire.over_view([*outer, *inner], scene.view), "laws": _finite32(laws)}
    if scene.shade != "none":
        arrays["shade"] = (wire.signed_shares if scene.shade == "raw" else wire.shares)(shade / scale)
    if scene.region:
        cx, cy, half = scene.view
        rings = levels.patches(0.0, loss.m2, (cx - half, cx + half, cy - half, cy + half))
        header["rings"] = [len(ring) for ring in rings]
        arrays["patches"] = wire.over_view(rings, scene.view)
    if scene.flow == "arrows":
        nodes = wire.arrow_nodes(n)
        arrays["arrows"] = wire.arrows(np.stack((force[0][nodes], force[1][nodes]), axis=-1), reference)
    elif scene.flow == "streams":
        arrays["streams"] = wire.fractions(streamlets(np.moveaxis(force, 0, -1)))
    if scene.lines != "none":
        chosen = [(level, levels.lines(level)) for level in _levels(scene, raw, scale, loss.m2)]
        header["contours"] = [[level, [len(line) for line in lines]] for level, lines in chosen]
        arrays["contours_at"] = wire.over_view([line for _, lines in chosen for line in lines], scene.view)
    if scene.cut:
        arrays["cut"] = _finite32(np.stack((field.raw.numpy()[n * n :], field.energy.numpy()[n * n :])))
    return header, arrays, places[: n * n][active.ravel()]


def _triplet(scene: Scene, reading: FieldTable) -> dict[str, Any]:
    """Return the header entries that depend only on the three points: energies, forces, edge lengths and circles."""
    loss, lengths = scene.module(), [float(length) for length in reading.sides.lengths]
    return {
        "raw": number(reading.raw.item()),
        "energy": number(reading.energy.item()),
        "m2": number(loss.m2),
        "m1": number(loss.margin),
        "mu": scene.mu,
        "hit": reading.active.item(),
        "positive": readout.is_positive(scene.loss),
        "forces": [(force.numpy() + 0.0).tolist() for force in reading.forces],  # + 0.0 turns -0 into 0
        "residuals": [(force.numpy() + 0.0).tolist() for force in reading.residuals],
        "edges": dict(zip(readout.EDGES, lengths, strict=True)),
        "strengths": {edge: SIGNS[k] * float(reading.slopes.get(k, 0.0)) + 0.0 for k, edge in enumerate(readout.EDGES)},
        "discs": readout.discs(lengths[0]) if scene.discs else None,
        "mining": readout.mining(scene) if scene.mining else None,
    }


def _nearest_active(scene: Scene, places: Array) -> list[float] | None:
    """Return a position near the probe and well inside the region where the loss is active.

    Returns None if `places`, the active positions (K, 2), is empty.
    """
    if not len(places):
        return None
    here = np.array(getattr(scene, scene.probe))
    nearest = places[np.linalg.norm(places - here, axis=1).argmin()]
    inner = nearest + 0.25 * (places.mean(0) - nearest)
    chosen = places[np.linalg.norm(places - inner, axis=1).argmin()]
    return [round(float(v), 3) for v in chosen]


def _places(scene: Scene, n: int) -> tuple[Array, Array, Array]:
    """Return the grid coordinates x (n,) and y (n,), and all positions to evaluate.

    The positions are the grid nodes, row by row, followed by the points of the cut if it is shown.
    """
    x, y, places = _nodes(scene.view, n)
    if scene.cut:
        ends = np.reshape(scene.line, (2, 2))
        places = np.concatenate((places, ends[0] + np.linspace(0, 1, CUT)[:, None] * (ends[1] - ends[0])))
    return x, y, places


@lru_cache(maxsize=64)
def _nodes(view: tuple[float, float, float], n: int) -> tuple[Array, Array, Array]:
    x0, y0, half = view
    step = 2 * half / n
    x, y = ((np.arange(n) + 0.5) * step + (c - half) for c in (x0, y0))
    return x, y, np.stack(np.meshgrid(x, y)).reshape(2, -1).T  # contiguous columns


def _reach(points: Array) -> float:
    """Return the largest distance on the axis of the force laws: a power of two above the longest edge."""
    longest = max(math.dist(points[i], points[j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    return float(2.0 ** math.ceil(math.log2(max(1.25 * longest, 1.0))))


def _levels(scene: Scene, raw: Array, scale: float, m2: float) -> Iterator[float]:
    """Yield the energies of the contour lines: multiples of a round step, except 0.

    If `scene.lines` is "clamped", only energies between 0 and m2 are included.
    """
    step = _round_up(scale / 7)
    finite = raw[np.isfinite(raw)]
    if not finite.size:
        return
    low, high = float(finite.min()), float(finite.max())
    if scene.lines == "clamped":
        low, high = max(low, step / 2), min(high, m2 - step / 4)
    first, last = math.ceil(max(low, -12 * step) / step), math.floor(min(high, 12 * step) / step)
    yield from (k * step for k in range(first, last + 1) if k)


def _round_up(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= value * (1 - 1e-9))


def _finite32(values: Array) -> Array:
    return np.asarray(np.minimum(np.maximum(values, -1e30), 1e30).astype(np.float32))


def _heavy(request: Request) -> bool:
    return bounded(request.get("n"), 0, FINEST, INLINE) > INLINE


WORKERS = WorkerPool(__name__)
ROUTES: list[BaseRoute] = [socket_route("/api/field", answer, heavy=_heavy, pool=WORKERS)]
