"""Charges over a WebSocket: a spec comes in, the steps the browser lacks go out; computed and kept in Python.

A request is {"spec", "have", "want", "show", "id"}: the page holds steps 0..have, wants them up to `want`, and looks at
step `show`. It says everything, so that a socket has no state of its own: when it dies nothing stays behind, and any
other socket, or the page itself, goes on from the same spec. What is computed is kept by spec, bounded in bytes, and
shared: a class that opens one link computes it once. A spec that only differs later on (another slider at step 40)
shares the steps before.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Mapping
from typing import Any

import anyio.to_thread
import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dmlcore.figures.charges import draw_charges, save_figure
from dmlcore.figures.fields import FORMATS
from dmlcore.simulation import (
    FIXED_COLUMNS,
    MOST_STEPS,
    ChargesFrame,
    Simulation,
    Spec,
    clamp_lines,
    depends_on,
    phase_portrait,
)
from dmlcore.typing import Array, Singles
from pages.losses.charges import state as charges_state
from pages.shared.server import history_cache
from pages.shared.server.exports import file_response
from pages.shared.server.websocket import pack, socket_route
from pages.shared.state.untrusted import bounded, flag

PATIENCE = 0.25  # seconds one answer computes; what is not ready then comes with the next
MOST_FRAMES = 100  # in one answer
EXPORT_PATIENCE = 60.0
SHOWN = {"trails": True, "arrows": False, "circles": False, "dark": False}  # of the picture, as the page begins


class _Simulations:
    """What is kept here: simulations by their spec."""

    def key(self, spec: Spec) -> str:
        return json.dumps(charges_state.to_json(spec))

    def fresh(self, spec: Spec) -> Simulation:
        return Simulation(spec)

    def fork(self, history: Simulation, spec: Spec) -> Simulation:
        return history.forked(spec)

    def shared(self, history: Simulation, spec: Spec) -> int:
        return history.shared_with(spec)

    def bytes(self, history: Simulation) -> int:
        return frame_bytes(history.spec) * len(history.frames)


class Kept(history_cache.Kept[Spec, Simulation]):
    """Simulations by spec; the oldest go when the frames of all exceed `most` bytes."""

    def __init__(self, most: int = history_cache.KEPT_BYTES) -> None:
        super().__init__(_Simulations(), most)


def frame_bytes(spec: Spec) -> int:
    """Memory of one frame: positions and forces in float32, class means, and the objects around them."""
    return 16 * spec.points + 12 * spec.classes + 1000


KEPT = Kept()


def answer(request: dict[str, Any]) -> bytes:
    """The steps after request["have"] up to request["want"], as far as they are ready within PATIENCE; at least one.

    Arrays: positions and forces (K, N, 2), means (K, C, 2), radii (K, C), measures (K, len(FIXED_COLUMNS)) float32;
    the portrait of step `show`, uint8 (bins, bins), logarithmic; `corners` (L, 2) of its clamp lines over [0, reach]^2.
    """
    spec = charges_state.spec_of(request.get("spec"))
    have = int(bounded(request.get("have"), -1, MOST_STEPS, -1))
    want = int(bounded(request.get("want"), 0, MOST_STEPS, 0))
    simulation, lock = KEPT.of(spec, draft=request.get("draft") is True)
    began = time.monotonic()
    with lock:
        # A page that holds more than is kept (it was away, and the oldest went) waits until it is computed again.
        while len(simulation.frames) <= want and (not simulation.frames or time.monotonic() - began < PATIENCE):
            simulation.advance()
        ready = len(simulation.frames)
    first = min(have + 1, ready)
    last = min(ready - 1, max(want, 0), first + MOST_FRAMES - 1)
    frames = simulation.frames[first : last + 1]
    shown = int(bounded(request.get("show"), 0, ready - 1, min(want, ready - 1)))
    header = {
        "id": request.get("id") if isinstance(request.get("id"), int) else 0,
        "first": first,
        "ready": ready - 1,
        "most": MOST_STEPS,
        "columns": list(FIXED_COLUMNS),
        "triplets": [frame.triplets for frame in frames],
        "capped": [frame.capped for frame in frames],
    }
    portrait, lines = _portrait(simulation, shown)
    if request.get("rest") is True:
        header |= {"query": charges_state.to_query(spec), "python": spec.to_python(shown)}
    return pack(header | portrait, _columns(simulation, frames) | lines)


def _columns(simulation: Simulation, frames: list[ChargesFrame]) -> dict[str, Array]:
    n, c = simulation.spec.points, simulation.spec.classes
    measures = [[getattr(frame, name) for name in FIXED_COLUMNS] for frame in frames]
    return {
        "labels": simulation.labels.astype(np.uint8),
        "positions": _stack([f.positions for f in frames], (n, 2)),
        "forces": _stack([f.force for f in frames], (n, 2)),
        "means": _stack([f.means for f in frames], (c, 2)),
        "radii": _stack([f.radii for f in frames], (c,)),
        "measures": np.array(measures, dtype=np.float32).reshape(len(frames), len(FIXED_COLUMNS)),
    }


def _stack(arrays: list[Singles], shape: tuple[int, ...]) -> Singles:
    return np.stack(arrays).astype(np.float32) if arrays else np.empty((0, *shape), dtype=np.float32)


def _portrait(simulation: Simulation, step: int) -> tuple[dict[str, Any], dict[str, Array]]:
    portrait = phase_portrait(simulation.frames[step].positions.astype(np.float64), simulation.labels)
    loss = simulation.spec.law_at(step).module()
    asked = depends_on(loss)
    lines = clamp_lines(loss, portrait.reach)
    corners = np.concatenate([*lines[0], *lines[1], np.empty((0, 2))])
    top = float(portrait.counts.max())
    header = {
        "shown": step,
        "reach": portrait.reach,
        "violated": portrait.violated,
        "valid": int(portrait.counts.sum()),
        "top": int(top),
        "outer": [len(line) for line in lines[0]],
        "inner": [len(line) for line in lines[1]],
        "third_edge": "pn" in asked,
        "norms": bool(asked & {"a", "p", "n"}),
    }
    shade = np.rint(255 * np.log1p(portrait.counts) / max(np.log1p(top), 1e-9)).astype(np.uint8)
    return header, {"density": shade, "corners": corners.astype(np.float32)}


# ---- taking the history along
def history(spec: Spec, steps: int, patience: float = EXPORT_PATIENCE) -> dict[str, Any] | None:
    """Everything of steps 0..steps as arrays; None if it is not ready within `patience` seconds."""
    simulation = _computed(spec, steps, patience)
    if simulation is None:
        return None
    frames = simulation.frames[: steps + 1]
    columns = _columns(simulation, frames)
    names = {name: columns["measures"][:, i] for i, name in enumerate(FIXED_COLUMNS)}
    return {k: v for k, v in columns.items() if k != "measures"} | names


def _computed(spec: Spec, steps: int, patience: float) -> Simulation | None:
    """The simulation with the frames 0..steps, which only grows from then on; None if that takes too long."""
    simulation, lock = KEPT.of(spec)
    began = time.monotonic()
    with lock:
        while len(simulation.frames) <= steps:
            if time.monotonic() - began > patience:
                return None
            simulation.advance()
    return simulation


async def _history(request: Request) -> Response:
    query = dict(request.query_params)
    if request.path_params["kind"] not in ("npz", "json"):
        return Response(status_code=404)
    spec = charges_state.from_query(query)
    steps = int(bounded(query.get("step"), 0, MOST_STEPS, 0))
    arrays = await anyio.to_thread.run_sync(history, spec, steps, limiter=history_cache.TURNS)
    if arrays is None:
        return _not_ready()
    name = f"charges-{spec.start}-{spec.seed}-{steps}.{request.path_params['kind']}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    if request.path_params["kind"] == "json":
        body = {"spec": charges_state.to_json(spec)} | {k: v.tolist() for k, v in arrays.items()}
        return Response(json.dumps(body), media_type="application/json", headers=headers)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, spec=json.dumps(charges_state.to_json(spec)), **arrays)
    return Response(buffer.getvalue(), media_type="application/octet-stream", headers=headers)


def picture(query: Mapping[str, str], format: str, patience: float = EXPORT_PATIENCE) -> bytes | None:
    """The step of a link as svg, pdf or png; None if it is not ready within `patience` seconds."""
    spec, step = charges_state.from_query(dict(query)), int(bounded(query.get("step"), 0, MOST_STEPS, 0))
    simulation = _computed(spec, step, patience)
    if simulation is None:
        return None
    shown = {name: flag(query.get(name), usual) for name, usual in SHOWN.items()}
    return save_figure(draw_charges(simulation, step, **shown), format=format)


async def _picture(request: Request) -> Response:
    query, format = dict(request.query_params), request.path_params["format"]
    if format not in FORMATS:
        return Response(status_code=404)
    content = await anyio.to_thread.run_sync(picture, query, format, limiter=history_cache.TURNS)
    if content is None:
        return _not_ready()
    spec = charges_state.from_query(query)
    step = int(bounded(query.get("step"), 0, MOST_STEPS, 0))
    return file_response(content, f"charges-{spec.start}-{spec.seed}-{step}.{format}", format)


def _not_ready() -> Response:
    return Response("not ready yet: play the page to this step, or ask again", 503, headers={"Retry-After": "30"})


ROUTES: list[BaseRoute] = [
    socket_route("/api/charges", answer, heavy=lambda _: True, limiter=history_cache.TURNS),
    Route("/api/charges/history.{kind}", _history),
    Route("/api/charges/export.{format}", _picture),
]
