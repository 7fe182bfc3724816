"""WebSocket service of the Charges page, which sends frames of a simulation, and export of the simulation."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
from starlette.routing import BaseRoute

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
from pages.shared.server.exports import Query, export_route
from pages.shared.timeline.history_cache import HistoryCache
from pages.shared.timeline.service import Answer, FrameRequest, Timeline


def contents(asked: FrameRequest[ChargesState, Simulation]) -> Answer:
    """Return header and arrays of the requested frames, and the phase portrait of step `show`.

    Shapes for K frames, N points and C classes: positions and forces (K, N, 2), means (K, C, 2), radii (K, C) and
    measures (K, len(FIXED_COLUMNS)), float32. The portrait has a density, uint8 (bins, bins), logarithmic, and
    `corners` (L, 2), float32, of the lines where the loss reaches its clamps, over [0, reach]^2.
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
    contents=contents,
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


# ---- export
def _name(spec: ChargesState, step: int, format: str) -> str:
    return f"charges-{spec.start}-{spec.seed}-{step}.{format}"


async def _compute(query: Query) -> None:
    await TIMELINE.compute(ChargesState.from_query(query), TIMELINE.step(query))


def _history(query: Query, format: str, dark: bool) -> tuple[bytes, str]:
    """Return the file content (JSON or npz) with all steps up to the step in the URL, and the file name."""
    spec, step = ChargesState.from_query(query), TIMELINE.step(query)
    (simulation,), _ = TIMELINE.made(spec, step)
    columns = _columns(simulation, simulation.frames[: step + 1])
    measures = columns.pop("measures")
    arrays: dict[str, Any] = columns | {name: measures[:, i] for i, name in enumerate(FIXED_COLUMNS)}
    if format == "json":
        body = {"spec": spec.to_json()} | {k: v.tolist() for k, v in arrays.items()}
        return json.dumps(body).encode(), _name(spec, step, format)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, spec=json.dumps(spec.to_json()), **arrays)
    return buffer.getvalue(), _name(spec, step, format)


ROUTES: list[BaseRoute] = [
    TIMELINE.route,
    export_route("/api/charges/history", _history, ("npz", "json"), _compute),
]
