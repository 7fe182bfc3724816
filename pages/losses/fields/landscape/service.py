"""WebSocket service of the 3-D loss landscape on Fields and Compare, and the route that serves plotly.js.

The landscape is a plotly.js figure. plotly.js comes from the installed Python package, which is not imported; pages
load it only to show a landscape.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route

from dmlcore import losses
from dmlcore.figures.landscapes import NODES, Landscape, draw, surface, to_one_scale
from dmlcore.geometry import Probe
from dmlcore.geometry.loss_variant import Variant
from dmlcore.simulation.marble import Roll, roll
from pages.losses.fields.compare.service import read_as
from pages.losses.fields.compare.state import ComparisonView
from pages.shared.plane.service import as_tensors
from pages.shared.plane.state import Scene
from pages.shared.server import wire
from pages.shared.server.websocket import socket_route
from pages.shared.server.wire import pack

COARSE = 37  # nodes per side of a surface during a drag


def answer(request: dict[str, Any]) -> bytes:
    """Return the landscape of request["scene"] or request["comparison"].

    If "roll" is true, the grid of the surfaces is fine and marbles (gradient descent paths) roll on them; otherwise the
    grid is coarse. "dark" selects the colours, and "stacked" places one surface below the other. The header of the
    response holds the plotly figure, "verdicts" (one sentence per marble) and "hidden" (the values at which the
    surfaces are cut off).
    """
    state: Scene | ComparisonView = (
        ComparisonView.of(request["comparison"]) if "comparison" in request else Scene.of(request.get("scene"))
    )
    rolls = request.get("roll") is True
    shown = landscape(state, rolls=rolls, n=NODES if rolls else COARSE)
    header = {
        "id": wire.identity(request),
        "plotly": version("plotly"),
        "figure": draw(shown, dark=request.get("dark") is True, stacked=request.get("stacked") is True),
        "verdicts": verdicts(shown),
        "hidden": hidden(shown),
    }
    return pack(header, {})


def landscape(state: Scene | ComparisonView, *, rolls: bool = True, n: int = NODES) -> Landscape:
    """Return the landscape of a scene or, for a comparison, of its pair; n nodes per side, marbles only if `rolls`."""
    points = list(as_tensors(state))
    if isinstance(state, ComparisonView):
        variants = [read_as(state)[k] for k in state.pair]
        titles = [f"{k + 1}  {losses.formula(state.panels[k].loss).title}" for k in state.pair]
    else:
        variants, titles = [Variant(state.module())], [losses.formula(state.loss).title]
    return Landscape(
        surfaces=to_one_scale([surface(v, points, probe=state.probe, view=state.view, n=n) for v in variants]),
        points=points,
        probe=state.probe,
        view=state.view,
        titles=titles,
        rolls=[roll(v, *points, view=state.view, probe=state.probe, mass=state.mass) for v in variants if rolls],
    )


def verdicts(shown: Landscape) -> list[str]:
    """Return one sentence per marble (gradient descent path) on where it stops.

    With several marbles, each sentence begins with the title of its loss.
    """
    several = len(shown.rolls) > 1
    return [
        f"{title.strip()}: {verdict(way, shown.probe)}" if several else verdict(way, shown.probe)
        for title, way in zip(shown.titles, shown.rolls, strict=False)
    ]


def verdict(way: Roll, probe: Probe) -> str:
    """Return a sentence on where the marble comes to rest and what this means for the triplet."""
    loss = f"{way.energy[-1]:.3g}".replace("-", "−")
    if not way.moved:
        return {
            "floor": f"Flat: the loss is 0 here, so no force acts on the {probe}.",
            "ceiling": f"Flat: above the upper clamp no force acts on the {probe}, although its loss is {loss}.",
            "onto": f"The {probe} coincides with the {way.other}, where the force has no direction.",
        }.get(way.ending, f"The forces on the {probe} balance here, at loss {loss}.")
    return {
        "floor": f"The {probe} stops where the loss is 0: the triplet is satisfied.",
        "ceiling": f"The {probe} stops at the upper clamp, at loss {loss}: the triplet is too hard.",
        "onto": f"The {probe} falls onto the {way.other}: the two embeddings coincide, at loss {loss}.",
        "hollow": f"The {probe} stops in a minimum at loss {loss}: the forces balance.",
        "out": f"The {probe} rolls out of view, at loss {loss}. Zoom out to follow it.",
        "rolling": f"The {probe} is still moving, at loss {loss}, where the simulation ends.",
    }[way.ending]


def hidden(shown: Landscape) -> str:
    """Return one or more sentences on the values at which surfaces are cut off; "" if no surface is cut."""
    return " ".join(dict.fromkeys(s.hidden for s in shown.surfaces if s.hidden))


@cache
def plotly_js() -> Path:
    """Return the path of plotly.js in the installed Python package, found without importing it."""
    spec = importlib.util.find_spec("plotly")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("plotly is not installed: pip install plotly")
    return Path(spec.origin).parent / "package_data" / "plotly.min.js"


async def _plotly(request: Request) -> Response:
    if request.path_params["version"] != version("plotly"):
        return Response(status_code=404)
    kept = {"Cache-Control": "public, max-age=31536000, immutable"}
    return FileResponse(plotly_js(), media_type="text/javascript", headers=kept)


ROUTES: list[BaseRoute] = [
    socket_route("/api/landscape", answer, heavy=lambda _: True),
    Route("/api/landscape/plotly-{version}.js", _plotly),
]
