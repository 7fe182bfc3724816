"""Charges: what a simulation tells of its steps (pages/shared/timeline/service.py), and its histories as files."""

from __future__ import annotations

import io
import json
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
    clamp_lines,
    depends_on,
    phase_portrait,
)
from dmlcore.typing import Array, Singles
from pages.losses.charges.state import ChargesState
from pages.shared.server.exports import file_response
from pages.shared.state.untrusted import bounded, flag
from pages.shared.timeline.history_cache import HistoryCache
from pages.shared.timeline.service import TURNS, Answer, FrameRequest, Timeline

EXPORT_PATIENCE = 60.0
SHOWN = {"trails": True, "arrows": False, "circles": False, "dark": False}  # of the figure, as the page begins


def told(asked: FrameRequest[ChargesState, Simulation]) -> Answer:
    """The frames, and the portrait of the step looked at.

    Arrays: positions and forces (K, N, 2), means (K, C, 2), radii (K, C), measures (K, len(FIXED_COLUMNS)) float32;
    the portrait of step `show`, uint8 (bins, bins), logarithmic; `corners` (L, 2) of its clamp lines over [0, reach]^2.
    """
    (simulation,), (frames,) = asked.histories, asked.frames
    header = {
        "most": MOST_STEPS,
        "columns": list(FIXED_COLUMNS),
        "triplets": [frame.triplets for frame in frames],
        "capped": [frame.capped for frame in frames],
    }
    portrait, lines = _portrait(simulation, min(asked.show, asked.ready))
    return header | portrait, _columns(simulation, frames) | lines


TIMELINE: Timeline[ChargesState, Simulation] = Timeline(
    "/api/charges",
    state_of=ChargesState.of,
    specs=lambda spec: {"": spec},
    kept=HistoryCache(Simulation),
    told=told,
    rested=lambda spec, step: {"query": spec.to_query(), "python": spec.to_python(step)},
    most_steps=MOST_STEPS,
    patience=0.25,
    most_frames=100,
)


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
def history(spec: ChargesState, steps: int, patience: float = EXPORT_PATIENCE) -> dict[str, Any] | None:
    """Everything of steps 0..steps as arrays; None if it is not ready within `patience` seconds."""
    (simulation,), ready, _ = TIMELINE.computed(spec, steps, patience)
    if ready < steps:
        return None
    frames = simulation.frames[: steps + 1]
    columns = _columns(simulation, frames)
    names = {name: columns["measures"][:, i] for i, name in enumerate(FIXED_COLUMNS)}
    return {k: v for k, v in columns.items() if k != "measures"} | names


async def _history(request: Request) -> Response:
    query = dict(request.query_params)
    if request.path_params["kind"] not in ("npz", "json"):
        return Response(status_code=404)
    spec = ChargesState.from_query(query)
    steps = int(bounded(query.get("step"), 0, MOST_STEPS, 0))
    arrays = await anyio.to_thread.run_sync(history, spec, steps, limiter=TURNS)
    if arrays is None:
        return _not_ready()
    name = f"charges-{spec.start}-{spec.seed}-{steps}.{request.path_params['kind']}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    if request.path_params["kind"] == "json":
        body = {"spec": spec.to_json()} | {k: v.tolist() for k, v in arrays.items()}
        return Response(json.dumps(body), media_type="application/json", headers=headers)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, spec=json.dumps(spec.to_json()), **arrays)
    return Response(buffer.getvalue(), media_type="application/octet-stream", headers=headers)


def figure(query: Mapping[str, str], format: str, patience: float = EXPORT_PATIENCE) -> bytes | None:
    """The step of a link as svg, pdf or png; None if it is not ready within `patience` seconds."""
    spec, step = ChargesState.from_query(dict(query)), int(bounded(query.get("step"), 0, MOST_STEPS, 0))
    (simulation,), ready, _ = TIMELINE.computed(spec, step, patience)
    if ready < step:
        return None
    shown = {name: flag(query.get(name), default) for name, default in SHOWN.items()}
    return save_figure(draw_charges(simulation, step, **shown), format=format)


async def _figure(request: Request) -> Response:
    query, format = dict(request.query_params), request.path_params["format"]
    if format not in FORMATS:
        return Response(status_code=404)
    content = await anyio.to_thread.run_sync(figure, query, format, limiter=TURNS)
    if content is None:
        return _not_ready()
    spec = ChargesState.from_query(query)
    step = int(bounded(query.get("step"), 0, MOST_STEPS, 0))
    return file_response(content, f"charges-{spec.start}-{spec.seed}-{step}.{format}", format)


def _not_ready() -> Response:
    return Response("not ready yet: play the page to this step, or ask again", 503, headers={"Retry-After": "30"})


ROUTES: list[BaseRoute] = [
    TIMELINE.route,
    Route("/api/charges/history.{kind}", _history),
    Route("/api/charges/export.{format}", _figure),
]
