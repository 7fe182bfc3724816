"""WebSocket service of the Errata page: printed and correct gradients at a triplet, and a map of their difference.

Each response carries the array `shade`, uint8 (n, n): |printed - correct| / scale at each position of the probe, the
point of the triplet that is moved over the map. The first row is at the bottom of the map.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import numpy as np
import torch
from starlette.routing import BaseRoute
from torch import Tensor

from dmlcore import losses
from dmlcore.geometry.scales import percentile, round_top
from dmlcore.published.printed_formulas import COUNTEREXAMPLES, POINTS, CounterExampleGradients, compare
from pages.library.errata.state import Example
from pages.shared.plane.service import as_tensors
from pages.shared.server import wire
from pages.shared.server.websocket import socket_route
from pages.shared.server.wire import pack
from pages.shared.state.untrusted import bounded

# smallest, default and largest number of nodes per map side; up to the default, computed on the event loop
FEWEST, INLINE, FINEST = 20, 81, 161


def answer(request: dict[str, Any]) -> bytes:
    """Return the printed and the correct gradients of request["scene"], and a map of their difference.

    `n` in the request is the number of nodes per side of the map; `scale`, if present, fixes the colour scale.
    """
    scene = Example.of(request.get("scene"))
    nodes = int(bounded(request.get("n"), FEWEST, FINEST, INLINE))
    x0, y0, half = scene.view
    step = 2 * half / nodes
    x, y = (torch.arange(nodes, dtype=torch.float64).add(0.5).mul(step).add(c - half) for c in (x0, y0))
    at = torch.stack(torch.meshgrid(x, y, indexing="xy"), dim=-1)
    example = COUNTEREXAMPLES[scene.number]
    a, p, n = (at if name == scene.probe else x for name, x in zip(POINTS, as_tensors(scene), strict=True))
    difference = compare(example, a, p, n, scene.hyper).difference
    shade = np.nan_to_num(difference.numpy(), nan=np.inf, posinf=np.inf)
    top = percentile(shade, 90)
    # round_top returns 1 if there is no difference
    scale = bounded(request.get("scale"), 1e-9, 1e12, round_top(top if top > 1e-9 else 0.0))
    header = {
        "id": wire.identity(request),
        "n": nodes,
        "view": scene.view,
        "scale": scale,
        "query": urlencode(scene.to_query(), safe=",:"),
        "fields": urlencode(scene.fields().to_query(), safe=",:"),
    } | readout(scene)
    return pack(header, {"shade": wire.shares(shade / scale)})


def readout(scene: Example) -> dict[str, Any]:
    """Return the printed and the correct gradients and energies at a triplet, and the norms of the differences.

    There is one gradient for each point of the triplet. Numbers that are not finite become None.
    """
    comparison, example = evaluated(scene), COUNTEREXAMPLES[scene.number]
    margin_left_out = example.truth is None and losses.formula(example.loss).margin is not None
    return {
        "printed": [_vector(g) for g in comparison.printed],
        "true": [_vector(g) for g in comparison.true],
        "apart": [_number((x - y).norm()) for x, y in zip(comparison.printed, comparison.true, strict=True)],
        "difference": _number(comparison.difference),
        "energy": "energy before the clamp" + (", without its margin" if margin_left_out else ""),
        "printed_energy": None if comparison.printed_energy is None else _number(comparison.printed_energy),
        "true_energy": _number(comparison.true_energy),
    }


def evaluated(scene: Example) -> CounterExampleGradients:
    """Return the printed and the correct gradients at the triplet of `scene`."""
    return compare(COUNTEREXAMPLES[scene.number], *as_tensors(scene), scene.hyper)


def _vector(gradient: Tensor) -> list[float | None]:
    return [_number(x) for x in gradient]


def _number(x: Tensor) -> float | None:
    return wire.number(float(x))


ROUTES: list[BaseRoute] = [
    socket_route("/api/truth", answer, heavy=lambda request: bounded(request.get("n"), 0, FINEST, INLINE) > INLINE)
]
