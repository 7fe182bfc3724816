"""Export from the Transport page: /api/transport/export.FORMAT?QUERY, with the URL query string of the page."""

from __future__ import annotations

from typing import Any

from starlette.routing import BaseRoute

from dmlcore.figures import fields, transports
from dmlcore.pooling.analysis.red_blue import SIDE
from pages.pooling.transport.state import TransportState, steps
from pages.shared.server.exports import Query, export_route, file_name


def export(state: TransportState, format: str, *, dark: bool = False) -> bytes:
    """Return the file to export for a page state in the given format, a key of `exports.TYPES`."""
    pixels, prototypes = steps(state.pixels).reshape(SIDE, SIDE, 2), steps(state.prototypes)
    problem: dict[str, Any] = {"mu": state.mu, "epsilon": state.epsilon, "sweeps": state.sweeps}
    if format == "py":
        return transports.snippet(pixels, prototypes, **problem, **({"dark": True} if dark else {})).encode()
    if format in fields.FORMATS:
        drawn = transports.draw_transport(pixels, prototypes, **problem, dark=dark)
        return fields.save_figure(drawn, format=format)
    arrays, about = transports.transport_arrays(pixels, prototypes, **problem), transports.about(**problem)
    return fields.as_npz(arrays, about) if format == "npz" else fields.as_json(arrays, about)


def _transport(query: Query, format: str, dark: bool) -> tuple[bytes, str]:
    state = TransportState.from_query(query)
    changed = {"mu": state.mu, "epsilon": state.epsilon}
    return export(state, format, dark=dark), file_name("transport", changed, format)


ROUTES: list[BaseRoute] = [export_route("/api/transport/export", _transport)]
