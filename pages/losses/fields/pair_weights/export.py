"""Export of the Pair weights page: /api/pair_weights/export.FORMAT?QUERY, with the URL query string of the page."""

from __future__ import annotations

from typing import Any

from starlette.routing import BaseRoute

from dmlcore.figures import fields, pair_weights
from pages.losses.fields.pair_weights.state import PairWeightsView
from pages.shared.server.exports import NUMBERS, Query, export_route, file_name


def export(view: PairWeightsView, format: str, *, dark: bool = False) -> bytes:
    """Return the view as a file: the arrays of weights (npz, json) or a Python snippet (py) that draws the figure.

    Args:
        format: One of `exports.NUMBERS`.
        dark: True for the dark theme of the figure.
    """
    losses = [panel.module() for panel in view.panels]
    placed: dict[str, Any] = {"rival": view.rival, "pn": view.pn, "at": view.at}
    shown: dict[str, Any] = {"weight": view.weight, "by": view.by, "signed": view.scale == "signed", "dark": dark}
    if format == "py":
        return pair_weights.snippet(losses, **placed, **shown).encode()
    arrays = pair_weights.weight_arrays(losses, **placed)
    about = pair_weights.about(losses, rival=view.rival, pn=view.pn)
    return fields.as_npz(arrays, about) if format == "npz" else fields.as_json(arrays, about)


def _pair_weights(query: Query, format: str, dark: bool) -> tuple[bytes, str]:
    view = PairWeightsView.from_query(query)
    name = file_name("-".join(["pair-weights", *(panel.loss for panel in view.panels)]), {}, format)
    return export(view, format, dark=dark), name


ROUTES: list[BaseRoute] = [export_route("/api/pair_weights/export", _pair_weights, NUMBERS)]
