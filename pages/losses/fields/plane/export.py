"""Export of the Fields page: /api/field/export.FORMAT?QUERY, with the URL query string of the page."""

from __future__ import annotations

import inspect
from typing import Any

from starlette.routing import BaseRoute

from dmlcore.figures import fields
from pages.shared.plane.state import POINTS, Scene
from pages.shared.server.exports import NUMBERS, Query, changed, export_route, file_name

_DEFAULTS = {k: p.default for k, p in inspect.signature(fields.draw_field).parameters.items()}


def export(scene: Scene, format: str, *, dark: bool = False) -> bytes:
    """Return the scene as a file in the given format, one of `exports.NUMBERS`."""
    loss = scene.module()
    view: dict[str, Any] = {k: getattr(scene, k) for k in (*POINTS, "probe", "view")}
    shown = view | drawing(scene, dark=dark)
    if format == "py":
        return fields.snippet(loss, **shown).encode()
    arrays, about = fields.field_arrays(loss, **view), fields.about(loss, probe=scene.probe, view=scene.view)
    return fields.as_npz(arrays, about) if format == "npz" else fields.as_json(arrays, about)


def drawing(scene: Scene, *, dark: bool = False) -> dict[str, Any]:
    """Return the arguments with which `draw_field` reproduces the page, omitting those equal to its defaults."""
    shown = {
        "shade": scene.shade,
        "contours": None if scene.lines == "none" else scene.lines,
        "region": scene.region,
        "arrows": scene.flow == "arrows",
        "streams": scene.flow == "streams",
        "forces": scene.forces,
        "decomposed": scene.edges,
        "discs": scene.discs,
        "mining": scene.mining,
        "dark": dark,
    }
    return {k: v for k, v in shown.items() if v != _DEFAULTS[k]}


def _field(query: Query, format: str, dark: bool) -> tuple[bytes, str]:
    scene = Scene.from_query(query)
    name = file_name(scene.loss, changed(scene.loss, scene.hyper), format)
    return export(scene, format, dark=dark), name


ROUTES: list[BaseRoute] = [export_route("/api/field/export", _field, NUMBERS)]
