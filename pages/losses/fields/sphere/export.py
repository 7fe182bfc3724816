"""Export of the Sphere page: /api/sphere/export.FORMAT?QUERY, with the URL query string of the page."""

from __future__ import annotations

import inspect
from typing import Any

from starlette.routing import BaseRoute

from dmlcore.figures import fields, spheres
from pages.losses.fields.sphere.state import SphereScene
from pages.shared.plane.state import POINTS
from pages.shared.server.exports import Query, changed, export_route, file_name

_DEFAULTS = {k: p.default for k, p in inspect.signature(spheres.draw_sphere).parameters.items()}


def export(scene: SphereScene, format: str, *, dark: bool = False) -> bytes:
    """Return the scene as a file in the given format, a key of `exports.TYPES`."""
    loss, sphere = scene.module(), scene.on == "sphere"
    # the circle uses longitudes only
    places: list[Any] = [getattr(scene, name) if sphere else getattr(scene, name)[0] for name in POINTS]
    shown = drawing(scene, dark=dark)
    if format == "py":
        return spheres.snippet(loss, scene.on, *places, probe=scene.probe, **shown).encode()
    if format in fields.FORMATS:
        draw = spheres.draw_sphere if sphere else spheres.draw_circle
        return fields.save_figure(draw(loss, *places, probe=scene.probe, **shown), format=format)
    measure = spheres.sphere_arrays if sphere else spheres.circle_arrays
    arrays = measure(loss, *places, probe=scene.probe)
    about = spheres.about(loss, scene.on, *places, probe=scene.probe)
    return fields.as_npz(arrays, about) if format == "npz" else fields.as_json(arrays, about)


def drawing(scene: SphereScene, *, dark: bool = False) -> dict[str, Any]:
    """Return the arguments of `draw_sphere` or `draw_circle` that reproduce the page, omitting defaults."""
    shown: dict[str, Any] = {"region": scene.region, "arrows": scene.arrows, "radial": scene.radial, "dark": dark}
    if scene.on == "sphere":
        shown["eye"] = scene.eye
    return {k: v for k, v in shown.items() if v != _DEFAULTS[k]}


def _sphere(query: Query, format: str, dark: bool) -> tuple[bytes, str]:
    scene = SphereScene.from_query(query)
    name = file_name(f"{scene.on}-{scene.loss}", changed(scene.loss, scene.hyper), format)
    return export(scene, format, dark=dark), name


ROUTES: list[BaseRoute] = [export_route("/api/sphere/export", _sphere)]
