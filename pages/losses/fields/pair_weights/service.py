"""WebSocket service of the Pair weights page: maps over (S_ap, S_an) for two losses on one scale.

Arrays for loss k = 0, 1: weight<k>, uint8 (n, n), where zero is 128 (signed) or 0 (size); corners<k>, uint16 (K, 2), of
the clamp boundaries over [-1, 1]. Common array: exists, uint8 (n, n), the fraction of each cell in which triplets
exist, 255 = all. Columns are S_ap; rows are S_an, starting at -1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from starlette.routing import BaseRoute
from torch import Tensor

from dmlcore.figures.pair_weights import boundary, common_top
from dmlcore.loss_analysis.pair_weights import PairWeights, Similarities, similarities, triplet_weights, unit_triplet
from dmlcore.losses import TripletLoss
from dmlcore.typing import Array, Bytes, Floats
from pages.losses.fields.pair_weights.state import NEAREST, PAIRS, PairWeightsView
from pages.shared.server import wire
from pages.shared.server.websocket import socket_route
from pages.shared.server.wire import pack
from pages.shared.state.untrusted import bounded, held, numbers

COARSEST, INLINE, FINEST = 21, 101, 181


def answer(request: dict[str, Any]) -> bytes:
    """Return both maps of request["view"] on n x n nodes, and the values of its triplet or of the one at request["at"].

    If "maps" is false, only the values are returned. "top" keeps the scale during a drag; "settle" (the drag has ended)
    recomputes a misleading scale and adds the URL query string.
    """
    view = PairWeightsView.of(request.get("view"))
    losses = [p.module() for p in view.panels]
    header: dict[str, Any] = {"id": wire.identity(request)}
    ap, an = numbers(request.get("at"), view.at, NEAREST)
    header |= readout(view, losses, (ap, an))
    if request.get("maps") is False:
        return pack(header, {})
    n = int(bounded(request.get("n"), COARSEST, FINEST, INLINE))
    axis = (torch.arange(n, dtype=torch.float64) + 0.5) * 2 / n - 1  # centres of n cells
    s = similarities(axis[None, :], axis[:, None], view.rival, view.pn)
    room = s.determinant().numpy()
    exists = room >= 0
    triplets_weights = [triplet_weights(loss, s) for loss in losses]
    weights = [_chosen(view, w, s) for w in triplets_weights]
    felt = np.stack([np.where(exists, np.abs(w), 0.0) for w in weights])
    settle = request.get("settle") is True
    top = held(request.get("top"), lambda: common_top(felt), settle)
    header |= {"n": n, "top": top, "signed": view.scale == "signed", "panels": []}
    arrays: dict[str, Array] = {"exists": _share(room)}
    for k, (loss, weight) in enumerate(zip(losses, weights, strict=True)):
        outer, inner = (
            boundary(axis.numpy(), triplets_weights[k].raw.numpy(), level, view.rival, view.pn)
            for level in (0.0, loss.m2)
        )
        header["panels"].append({"outer": [len(x) for x in outer], "inner": [len(x) for x in inner]})
        arrays |= {
            f"weight{k}": wire.signed_shares(weight / top) if header["signed"] else wire.shares(np.abs(weight) / top),
            f"corners{k}": wire.over_view([*outer, *inner], (0.0, 0.0, 1.0)),
        }
    if settle:
        header["query"] = view.link()
    return pack(header, arrays)


def readout(view: PairWeightsView, losses: list[TripletLoss], at: tuple[float, float]) -> dict[str, Any]:
    """Return the edges, positions and pair weights of the triplet with similarities `at` = (S_ap, S_an).

    "triplet" is None if no such triplet exists. "sphere" holds p, n and the arc between them as seen from a: the
    distance of a point from the centre is its angle to a, and 1 means opposite.
    """
    ap, an = (torch.tensor(v, dtype=torch.float64) for v in at)
    s = similarities(ap, an, view.rival, view.pn)
    there: dict[str, Any] = {"at": at, "triplet": None}
    if float(s.determinant()) < 1e-12:
        return there
    d = s.distances()
    there["triplet"] = {
        "S": {k: float(v) for k, v in zip(PAIRS, s, strict=True)},
        "d": {k: float(v) for k, v in zip(PAIRS, d, strict=True)},
        "sphere": _seen_from_anchor(unit_triplet(s)),
        "losses": [_numbers(view, loss, s) for loss in losses],
    }
    return there


def _numbers(view: PairWeightsView, loss: TripletLoss, s: Similarities) -> dict[str, Any]:
    triplet = triplet_weights(loss, s)
    shown = triplet.by_distance(s) if view.by == "d" else triplet
    raw = float(triplet.raw)
    weights = {k: float(getattr(shown, k)) + 0.0 for k in PAIRS}
    return {"loss": float(triplet.loss), "raw": raw, "active": 0 < raw < loss.m2, "weights": weights}


def _seen_from_anchor(points: Tensor) -> dict[str, list[list[float]]]:
    """Map p, n and 17 points of the great-circle arc between them by the azimuthal equidistant projection about a."""
    a, p, n = points
    angle = torch.acos((p @ n).clamp(-1, 1))
    t = torch.linspace(0, 1, 17, dtype=torch.float64)[:, None]
    arc = (torch.sin((1 - t) * angle) * p + torch.sin(t * angle) * n) / torch.sin(angle)
    across = arc[:, 1:]  # a = (1, 0, 0)
    sine = across.norm(dim=-1, keepdim=True)
    mapped = across / sine.clamp(min=1e-12) * torch.atan2(sine, arc @ a[:, None]) / math.pi
    places: list[list[float]] = mapped.tolist()
    return {"positive": places[:1], "negative": places[-1:], "arc": places}


def _chosen(view: PairWeightsView, weights: PairWeights, s: Similarities) -> Floats:
    shown = weights.by_distance(s) if view.by == "d" else weights
    values: Floats = getattr(shown, view.weight).numpy()
    return values


def _share(room: Floats) -> Bytes:
    """Return the approximate fraction of each cell in which triplets exist, as uint8 (255 = all).

    A triplet exists where the determinant `room` of its similarity matrix is at least 0.
    """
    slope = np.hypot(*np.gradient(room))
    return wire.shares(room / np.maximum(slope, 1e-12) + 0.5)


ROUTES: list[BaseRoute] = [
    socket_route("/api/pair_weights", answer, heavy=lambda r: bounded(r.get("n"), 0, FINEST, INLINE) > INLINE)
]
