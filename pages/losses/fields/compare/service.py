"""WebSocket service of the Compare page: force fields of two to four losses for the same points, on common scales.

Arrays for panel k: shade<k>, uint8 (n, n); active<k>, packed bits; arrows<k>, int8 (20, 20, 2); corners<k>, uint16 (K,
2), over the view. Arrays for the pair: difference, uint8 (n, n), with 128 = 0, and apart, int8 (20, 20, 2). The first
row is at the bottom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from starlette.routing import BaseRoute
from torch import Tensor

from dmlcore.geometry import FieldTable
from dmlcore.geometry.boundary import level_lines
from dmlcore.geometry.loss_variant import Variant, scan_variant
from dmlcore.geometry.scales import percentile, round_top
from dmlcore.typing import Array, Floats
from pages.losses.fields.compare import sameness
from pages.losses.fields.compare.state import ComparisonView
from pages.shared.plane.service import as_tensors
from pages.shared.plane.state import POINTS
from pages.shared.server import wire
from pages.shared.server.websocket import socket_route
from pages.shared.server.wire import number, pack
from pages.shared.state.untrusted import REACH, bounded, finite, held

INLINE = 100  # Grids with at most this many nodes per side are computed directly on the event loop.
FINEST = 140

Numbers = dict[str, Any]


def answer(request: dict[str, Any]) -> bytes:
    """Return the fields of request["comparison"] on n x n nodes.

    If "fields" is false, only the values at the position request["at"] are returned. "scale", "reference" and "span"
    keep the scales of colour, arrows and difference during a drag. "settle" (the drag has ended) recomputes misleading
    scales, unless "lock" is true, and adds the URL query string and the script.
    """
    comparison = ComparisonView.of(request.get("comparison"))
    variants = read_as(comparison)
    header: Numbers = {"id": wire.identity(request)}
    at = request.get("at")
    place = [finite(v) for v in at] if isinstance(at, list) and len(at) == 2 else [None]
    if None not in place:
        header |= {"at": place} | _at_position(variants, comparison, place)
    if request.get("fields") is False:
        return pack(header, {})
    n = int(bounded(request.get("n"), 2 * wire.ARROWS, FINEST, INLINE))
    x, y = axes(comparison, n)
    fields = [scanned(v, comparison, x, y) for v in variants]
    settle, lock = request.get("settle") is True, request.get("lock") is True
    shown, span_fits, largest = _difference(comparison, fields)
    shades = [_shade(comparison, f) for f in fields]
    active = np.stack([f.active.numpy() for f in fields])
    strength = np.stack([f.size.numpy() for f in fields])[active]
    top, middle = percentile(np.abs(np.stack(shades))[active], 97), percentile(strength, 50)
    scale = held(request.get("scale"), lambda: round_top(top, _top(variants)), settle, lock=lock)
    reference = held(request.get("reference"), lambda: round_top(middle), settle, lock=lock)
    span = held(request.get("span"), lambda: round_top(max(span_fits, scale / 1000)), settle, lock=lock)
    header |= {
        "n": n,
        "view": comparison.view,
        "scale": scale,
        "reference": reference,
        "span": span,
        "signed": signed(comparison),
        "largest": number(largest),
        "panels": [],
        "same": sameness.judge(comparison),
    }
    if settle:
        header |= {"query": comparison.link(), "snippet": sameness.snippet(comparison)}
    arrays: dict[str, Array] = {
        "difference": wire.signed_shares(shown / span),
        "apart": _arrows(fields[comparison.pair[0]].force - fields[comparison.pair[1]].force, reference),
    }
    for k, (variant, field) in enumerate(zip(variants, fields, strict=True)):
        lines = _boundaries(variant, field, x, y)
        header["panels"].append(readout(variant, comparison) | {"outer": lines[0], "inner": lines[1]})
        arrays |= {
            f"shade{k}": (wire.signed_shares if header["signed"] else wire.shares)(shades[k] / scale),
            f"active{k}": np.packbits(field.active.numpy()),
            f"arrows{k}": _arrows(field.force, reference),
            f"corners{k}": wire.over_view(lines[2], comparison.view),
        }
    return pack(header, arrays)


def read_as(comparison: ComparisonView) -> list[Variant]:
    """Return the losses to draw; if `comparison.fit` is set, the second loss is multiplied by the best factor."""
    factor, shift = sameness.fit(comparison)
    return [
        Variant(
            panel.module(),
            clamp=comparison.clamp,
            both_orders=comparison.orders,
            factor=factor if k == comparison.pair[1] else 1.0,
            shift=shift if k == comparison.pair[1] and not comparison.clamp else 0.0,
        )
        for k, panel in enumerate(comparison.panels)
    ]


def readout(variant: Variant, comparison: ComparisonView) -> Numbers:
    """Return the values of one loss at the current triplet: energies, activity, and forces on A, P and N."""
    reading = _shown(variant.table(*as_tensors(comparison)), comparison)
    return {
        "raw": number(float(reading.raw)),
        "energy": number(float(reading.energy)),
        "m2": number(variant.m2),
        "hit": bool(reading.active),
        "factor": variant.factor,
        "shift": variant.shift,
        "forces": [(f + 0.0).tolist() for f in reading.forces],  # + 0.0 turns -0 into 0
    }


def _at_position(variants: list[Variant], comparison: ComparisonView, place: list[Any]) -> Numbers:
    """Return the loss and its force in each panel with the movable point at `place`, and the difference of the pair."""
    reached = [min(max(float(v), -REACH), REACH) for v in place]
    moved = {k: getattr(comparison, k) for k in POINTS} | {comparison.probe: reached}
    a, p, n = (torch.tensor(moved[k], dtype=torch.float64) for k in POINTS)
    readings = [_shown(v.table(a, p, n, probe=comparison.probe), comparison) for v in variants]
    energies = [float(f.energy) for f in readings]
    felt = [f.force for f in readings]
    first, second = comparison.pair
    return {
        "there": [{"energy": number(e), "force": (f + 0.0).tolist()} for e, f in zip(energies, felt, strict=True)],
        "left": {
            "energy": number(energies[first] - energies[second]),
            "force": float((felt[first] - felt[second]).norm()),
        },
    }


def scanned(variant: Variant, comparison: ComparisonView, x: Tensor, y: Tensor) -> FieldTable:
    return _shown(scan_variant(variant, *as_tensors(comparison), probe=comparison.probe, x=x, y=y), comparison)


def _shown(table: FieldTable, comparison: ComparisonView) -> FieldTable:
    """Return the table; if the comparison is on the sphere, only the tangential components of its forces are kept."""
    return replace(table, tangential=comparison.space == "sphere")


def axes(comparison: ComparisonView, n: int) -> tuple[Tensor, Tensor]:
    """Return the x and y coordinates (n,) of the centres of n x n cells that fill the view."""
    x0, y0, half = comparison.view
    cells = torch.arange(n, dtype=torch.float64).add(0.5).mul(2 * half / n).sub(half)
    return cells + x0, cells + y0


def signed(comparison: ComparisonView) -> bool:
    """Return True if the shaded values can be negative, as unclamped energies can."""
    return comparison.shade == "energy" and not comparison.clamp


def _shade(comparison: ComparisonView, field: FieldTable) -> Floats:
    values: Floats = (field.energy if comparison.shade == "energy" else field.size).numpy()
    return values


def _difference(comparison: ComparisonView, fields: Sequence[FieldTable]) -> tuple[Floats, float, float]:
    """Return the difference of the two compared losses, with its size.

    The difference (n, n) is signed for energies; for forces it is the length of the difference vector. The other values
    are the 97th percentile and the maximum of its absolute value.
    """
    first, second = (fields[k] for k in comparison.pair)
    if comparison.shade == "energy":
        apart: Floats = (first.energy - second.energy).numpy()
    else:
        apart = (first.force - second.force).norm(dim=-1).numpy()
    size = np.abs(apart[np.isfinite(apart)])
    return apart, percentile(size, 97), float(size.max()) if size.size else 0.0


def _boundaries(variant: Variant, field: FieldTable, x: Tensor, y: Tensor) -> tuple[list[int], list[int], list[Floats]]:
    """Return the boundary lines of the active region.

    Returns:
        The number of points of each line where the loss is 0, the number of points of each line where it reaches its
        upper clamp, and the points (K, 2) of all lines in this order.
    """
    if variant.clamp:
        levels = [(raw, level) for level in (0.0, variant.loss.m2) for raw in field.orders]
    else:
        levels = [(field.raw, 0.0)]
    outer, inner = (
        [
            line
            for raw, level in levels
            if math.isfinite(level) and (level == 0.0) is wanted
            for line in level_lines(x.numpy(), y.numpy(), raw.numpy(), level)
        ]
        for wanted in (True, False)
    )
    return [len(line) for line in outer], [len(line) for line in inner], outer + inner


def _arrows(force: Tensor, reference: float) -> Array:
    return wire.arrows(force.numpy()[wire.arrow_nodes(len(force))], reference)


def _top(variants: list[Variant]) -> float:
    return max(v.m2 for v in variants)


ROUTES: list[BaseRoute] = [
    socket_route("/api/compare", answer, heavy=lambda request: bounded(request.get("n"), 0, FINEST, INLINE) > INLINE)
]
