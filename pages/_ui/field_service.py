"""Fields over a WebSocket: a scene comes in, small bytes go out; computed in Python, painted by the component.

Arrays: uint8 shade (n, n), packed bits of the active region, int8 arrows (20, 20, 2), uint16 boundary points (K, 2)
over the view. Rows run from the bottom of the view to its top.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from starlette.routing import BaseRoute

from dmlcore.geometry import Field, distance, forces, scan
from dmlcore.geometry.boundary import level_lines
from pages._ui.scene import POINTS, Scene
from pages._ui.untrusted import bounded
from pages._ui.wire import pack, socket_route

ARROWS = 20  # arrows along one side
INLINE = 101  # grids up to this side are computed on the event loop (about 3 ms)
FINEST = 201
RANKING_MARGIN = 0.1  # of the ranking discs drawn on request, as in Karaman 2021, Fig. B.1


def answer(request: dict[str, Any]) -> bytes:
    """The field of request["scene"], at most FINEST nodes a side; request["scale"] locks the colour scale."""
    scene = Scene.of(request.get("scene"))
    n = int(bounded(request.get("n"), 2 * ARROWS, FINEST, 101))
    x0, y0, half = scene.view
    step = 2 * half / n
    x, y = (torch.arange(n, dtype=torch.float64).add(0.5).mul(step).add(c - half) for c in (x0, y0))
    loss = scene.module()
    points = [torch.tensor(getattr(scene, k), dtype=torch.float64) for k in POINTS]
    field = scan(loss, *points, probe=scene.probe, x=x, y=y)
    strength = field.force.norm(dim=-1).numpy()
    shade = field.energy.numpy() if scene.shade == "energy" else strength
    active = field.active.numpy()
    settle = request.get("settle") is True
    scale = _keep(
        request.get("scale"), _scale(shade, active, upper=loss.m2 if scene.shade == "energy" else math.inf), settle
    )
    reference = _keep(request.get("reference"), _scale(strength, active, share=50), settle)
    lines = [
        level_lines(x.numpy(), y.numpy(), field.raw.numpy(), level) for level in (0.0, loss.m2) if level < math.inf
    ]
    header = {
        "id": request.get("id") if isinstance(request.get("id"), int) else 0,
        "n": n,
        "scale": scale,
        "reference": reference,
        "view": scene.view,
        "outer": [len(line) for line in lines[0]],
        "inner": [len(line) for line in lines[1]] if len(lines) > 1 else [],
        "radius": float(distance(points[0], points[1])) + RANKING_MARGIN if scene.discs else None,
    } | readout(scene)
    return _pack(header, field, shade / scale, reference, [line for both in lines for line in both], scene.view)


def readout(scene: Scene) -> dict[str, Any]:
    """The numbers of the triplet itself: energies, whether it is active, forces and edge lengths."""
    loss = scene.module()
    a, p, n = (torch.tensor(getattr(scene, k), dtype=torch.float64) for k in POINTS)
    raw, energy = float(loss.raw(a, p, n)), float(loss.clamped(a, p, n))
    return {
        "raw": _json_number(raw),
        "energy": _json_number(energy),
        "m2": _json_number(loss.m2),
        "hit": 0 < raw < loss.m2,
        "forces": [(f + 0.0).tolist() for f in forces(loss, a, p, n)],  # + 0.0 makes a zero of -0
        "edges": {k: float(distance(*xy)) for k, xy in {"ap": (a, p), "an": (a, n), "pn": (p, n)}.items()},
    }


def _pack(
    header: dict[str, Any],
    field: Field,
    shade: NDArray[np.float64],
    reference: float,
    lines: list[NDArray[np.float64]],
    view: tuple[float, float, float],
) -> bytes:
    stride = header["n"] / ARROWS
    nodes = ((np.arange(ARROWS) + 0.5) * stride).astype(int)
    force = field.force.numpy()[np.ix_(nodes, nodes)]
    length = np.linalg.norm(force, axis=-1, keepdims=True)
    arrows = np.rint(127 * force / (length + reference))  # |F| / (|F| + reference): direction exact, length bounded
    low, width = np.array(view[:2]) - view[2], 2 * view[2]
    corners = np.concatenate(lines) if lines else np.empty((0, 2))
    arrays = {
        "shade": np.rint(255 * np.clip(np.nan_to_num(shade, posinf=1.0), 0, 1)).astype(np.uint8),
        "active": np.packbits(field.active.numpy()),
        "arrows": arrows.astype(np.int8),
        "corners": np.rint(65535 * np.clip((corners - low) / width, 0, 1)).astype(np.uint16),
    }
    return pack(header, arrays)


def _scale(
    values: NDArray[np.float64], active: NDArray[np.bool_], *, share: float = 97, upper: float = math.inf
) -> float:
    """A scale that `share` per cent of the active values stay below, rounded up to two digits, never above `upper`."""
    inside = values[active]
    top = float(np.percentile(inside, share)) if inside.size else 1.0
    if not (math.isfinite(top) and top > 0):
        return 1.0
    top = min(top, upper)
    digit = 10.0 ** (math.floor(math.log10(top)) - 1)
    return math.ceil(top / digit - 1e-9) * digit


def _keep(scale: Any, fitting: float, settle: bool) -> float:
    """A scale stays locked while the hand moves; once it settles, it stays unless it has become misleading."""
    locked = bounded(scale, 1e-9, 1e12, fitting)
    return fitting if settle and not 0.6 < locked / fitting < 1.6 else locked


def _json_number(x: float) -> float | None:
    return x if math.isfinite(x) else None


ROUTES: list[BaseRoute] = [
    socket_route("/api/field", answer, heavy=lambda request: bounded(request.get("n"), 0, FINEST, INLINE) > INLINE)
]
