"""Export of a loss landscape as one HTML file that works offline.

The URL is /api/landscape/WHAT/export.html?QUERY with WHAT = "field" or "compare" and the query string of that page. The
file contains the surfaces, marbles that can be released on them, formulas, parameters, sources and plotly.js.
"""

from __future__ import annotations

import html
import json
import math
from typing import Any

from starlette.routing import BaseRoute

from dmlcore import losses
from dmlcore.figures.fields import formula_svg
from dmlcore.figures.landscapes import draw
from dmlcore.figures.strokes import INK
from pages.losses.fields.compare.state import ComparisonView
from pages.losses.fields.landscape import service
from pages.shared.plane.state import POINTS, Scene
from pages.shared.server.exports import Query, changed, export_route, file_name
from pages.shared.state import untrusted
from pages.shared.state.panel import Panel

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ margin: 0 auto; max-width: 1200px; padding: 16px; font: 16px/1.5 system-ui, sans-serif;
  color: {text}; background: {page}; }}
h1 {{ font-size: 24px; margin: 0; }} h2 {{ font-size: 18px; margin: 20px 0 0; }}
.formula svg {{ max-width: 100%; height: auto; }}
small {{ opacity: .8; }}
</style></head><body>
<h1>{title}</h1>
<p>{caption}</p>
{figure}
<p>{verdicts}</p>
{losses}
<p><small>{triplet} Made with DML Lab; open this view there at <code>{link}</code>.</small></p>
</body></html>
"""
CAPTION = (
    "Height shows the loss if the {probe} were there; the slope is the force. Lines bound the region with a gradient, "
    "dashed at the upper clamp. The marble is the {probe}, released{how}. Drag to rotate."
)


def export(state: Scene | ComparisonView, *, dark: bool = False) -> str:
    """Return an HTML page with the landscape of a scene or comparison."""
    shown = service.landscape(state)
    panels: list[Scene | Panel] = [state] if isinstance(state, Scene) else [state.panels[k] for k in state.pair]
    title = f"Landscape of {' and '.join(losses.formula(p.loss).title for p in panels)}"
    how = ": gradient flow" if state.mass == 0 else f" with momentum, m = {state.mass:.3g}"
    places = ", ".join(f"{name} ({', '.join(map(untrusted.plain, getattr(state, name)))})" for name in POINTS)
    return PAGE.format(
        title=html.escape(title),
        text=INK[dark]["text"],
        page=INK[dark]["page"],
        caption=html.escape(CAPTION.format(probe=state.probe, how=how)),
        figure=_figure(draw(shown, dark=dark), dark),
        verdicts=html.escape(" ".join([*service.verdicts(shown), service.hidden(shown)])),
        losses="\n".join(_loss(panel, dark) for panel in panels),
        triplet=html.escape(f"Triplet: {places}."),
        link=html.escape(f"/{'compare' if isinstance(state, ComparisonView) else 'fields'}?{state.link()}"),
    )


def _figure(figure: dict[str, Any], dark: bool) -> str:
    """Return HTML with the plotly figure, plotly.js itself, and a button that starts the marbles."""
    from plotly import io  # imported here because the import is slow and needed only for exports

    ways = figure["marbles"]
    steps = [
        {
            "traces": [way["trace"] for way in ways],
            "data": [{axis: [way[axis][k]] for axis in "xyz"} | {"type": "scatter3d"} for way in ways],
        }
        for k in range(len(ways[0]["x"]))
    ]
    run = {"frame": {"duration": 25, "redraw": True}, "transition": {"duration": 0}, "mode": "immediate"}
    ink = INK[dark]
    button = {
        "type": "buttons",
        "x": 0,
        "y": 0,
        "xanchor": "left",
        "yanchor": "bottom",
        "bgcolor": ink["page"],
        "bordercolor": ink["text"],
        "font": {"color": ink["text"]},
        "buttons": [{"label": "Release the marble", "method": "animate", "args": [None, run]}],
    }
    whole = {
        "data": figure["data"],
        "layout": figure["layout"] | {"updatemenus": [button], "height": 620},
        "frames": steps,
    }
    # the JSON round trip converts the figure to plain data, as the component receives it
    text: str = io.to_html(
        json.loads(json.dumps(whole)),
        include_plotlyjs=True,
        full_html=False,
        validate=False,
        auto_play=False,
        config={"displayModeBar": False, "responsive": True},
    )
    return text


def _loss(panel: Scene | Panel, dark: bool) -> str:
    """Return the title, formula, parameters and source of a loss as HTML."""
    known = losses.formula(panel.loss)
    values = ", ".join(f"{name} = {untrusted.plain(x)}" for name, x in panel.hyper.items() if x != math.inf)
    return (
        f"<h2>{html.escape(known.title)}</h2><p>{html.escape(known.sentence)}</p>"
        f'<div class="formula">{formula_svg(panel.module(), dark=dark)}</div>'
        f"<p>{html.escape(values)}</p><p><small>Source: {html.escape(known.source)}</small></p>"
    )


def _field(query: Query, format: str, dark: bool) -> tuple[str, str]:
    scene = Scene.from_query(query)
    return export(scene, dark=dark), file_name(f"landscape-{scene.loss}", changed(scene.loss, scene.hyper), format)


def _compare(query: Query, format: str, dark: bool) -> tuple[str, str]:
    comparison = ComparisonView.from_query(query)
    names = [comparison.panels[k].loss for k in comparison.pair]
    return export(comparison, dark=dark), file_name("-".join(["landscape", *names]), {}, format)


ROUTES: list[BaseRoute] = [
    export_route("/api/landscape/field/export", _field, ("html",)),
    export_route("/api/landscape/compare/export", _compare, ("html",)),
]
