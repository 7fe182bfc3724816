"""WebSocket service that computes force fields of a triplet in the plane; the browser component draws them.

A response contains an array only if its layer is shown. The first row of an array is at the bottom of the view.

uint8: shade (n, n). int8: arrows (20, 20, 2). uint16, coordinates relative to the view: streams (S, K, 2); patches (K,
2), the rings around the active region, to be filled with the even-odd rule; corners (K, 2), the boundaries of the
active region; contours_at (K, 2), the contour lines. float32: laws (3, K), the values of pull_ap, push_an and push_pn;
cut (2, K), raw and clamped energy along the cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import torch
from starlette.routing import BaseRoute

from dmlcore import geometry, losses
from dmlcore.geometry import (
    PlaneScene,
    PlaneView,
    Worked,
    explain_balanced_rho,
    explain_margin_enclosing,
    explain_margin_for_ellipse,
    field_table,
)
from dmlcore.geometry.margins import RANKING_MARGIN
from dmlcore.typing import Array
from pages.shared.plane.state import POINTS, Scene
from pages.shared.server import wire
from pages.shared.server.websocket import socket_route
from pages.shared.server.wire import Request, number, pack
from pages.shared.server.worker_pool import WorkerPool
from pages.shared.state.untrusted import bounded, jsonable, numbers
from pages.shared.words.formulas import statements

INLINE = 101  # grids with up to this many nodes per side are computed on the event loop (about 2 ms)
FINEST = 201


def answer(request: Request) -> bytes:
    """Return the force field of request["scene"] on a grid of up to FINEST nodes per side.

    With "hover" in the request, the response holds only loss and force at that position. request["scale"] and
    request["reference"] keep the scales of colour and arrows fixed during a drag. "settle" (the drag has ended) adds
    the URL query string and slower results (area, margins).
    """
    return render_scene(Scene.of(request.get("scene")), request)


def warm_up() -> None:
    """Compute one field, so that the first visitor's field is fast."""
    # one thread suffices to compute a force field, and training runs use separate processes
    torch.set_num_threads(1)
    answer({})


def render_scene(scene: Scene, request: Request, more: Mapping[str, Any] | None = None) -> bytes:
    """Return the response to `request` for a validated scene; `more` is added to the header."""
    identity = wire.identity(request)
    if "hover" in request:
        return pack({"id": identity, "hover": _hover(scene, numbers(request["hover"], (0.0, 0.0)))}, {})
    settle = request.get("settle") is True
    sampled = PlaneScene(
        loss=scene.module(),
        points=(scene.anchor, scene.positive, scene.negative),
        window=scene.view,
        grid=int(bounded(request.get("n"), 2 * wire.ARROWS, FINEST, INLINE)),
        streams=scene.flow == "streams",
        cut=scene.line if scene.cut else None,
        scale=bounded(request.get("scale"), 1e-12, 1e12, 0.0),
        reference=bounded(request.get("reference"), 1e-12, 1e12, 0.0),
        refit=settle,
        **{name: getattr(scene, name) for name in ("probe", "shade", "lines", "region", "discs", "mining")},
    )
    shown = geometry.view(sampled)
    header = _numbers(scene, shown) | {"id": identity, "n": sampled.grid, "view": scene.view}
    if settle:
        header["bring"] = None if header["hit"] else shown.nearest_active(getattr(scene, scene.probe))
        header |= {"query": scene.to_query(), "hyper": jsonable(scene.hyper)}
        header |= {"region": _region(scene), "has_margins": _has_margins(scene)}
        if "batch" in request:
            header["margins"] = _margins(scene, request["batch"])
    return pack(header | dict(more or {}), _quantised(scene, shown))


def _numbers(scene: Scene, shown: PlaneView) -> dict[str, Any]:
    """Return the header entries of a view: numbers of the triplet, scales, and numbers of points of each line."""
    mining = shown.mining
    lines = {"outer": shown.outer, "inner": shown.inner} | ({} if shown.rings is None else {"rings": shown.rings})
    header = {
        "raw": number(shown.raw),
        "energy": number(shown.energy),
        "m2": number(scene.module().m2),
        "m1": number(scene.module().margin),
        "mu": scene.mu,
        "hit": shown.hit,
        "positive": _is_positive(scene.loss),
        "forces": shown.forces.tolist(),
        "residuals": shown.residuals.tolist(),
        "edges": shown.edges,
        "strengths": shown.strengths,
        "discs": shown.discs,
        "mining": mining
        and {
            "centre": None if mining.radius is None else "anchor",
            "radius": mining.radius,
            "labels": mining.names,
        },
        "scale": shown.scale,
        "reference": shown.reference,
        "reach": shown.reach,
        "signed": scene.shade == "raw",
        "quiet": not shown.active.any(),
        "flat": shown.flat,
    } | {name: [len(line) for line in each] for name, each in lines.items()}
    if shown.contours is not None:
        header["contours"] = [[level, [len(line) for line in each]] for level, each in shown.contours]
    return header


def _quantised(scene: Scene, shown: PlaneView) -> dict[str, Array]:
    """Return the arrays of the response, at the precision that the plane needs; see the top of this module."""
    arrays = {"corners": wire.over_view([*shown.outer, *shown.inner], scene.view), "laws": _finite32(shown.laws)}
    if shown.shade is not None:
        arrays["shade"] = (wire.signed_shares if scene.shade == "raw" else wire.shares)(shown.shade / shown.scale)
    if shown.rings is not None:
        arrays["patches"] = wire.over_view(shown.rings, scene.view)
    if scene.flow == "arrows":
        nodes = wire.arrow_nodes(len(shown.active))
        arrays["arrows"] = wire.arrows(np.stack([along[nodes] for along in shown.force], axis=-1), shown.reference)
    if shown.streams is not None:
        arrays["streams"] = wire.fractions(shown.streams)
    if shown.contours is not None:
        arrays["contours_at"] = wire.over_view([line for _, each in shown.contours for line in each], scene.view)
    if shown.cut is not None:
        arrays["cut"] = _finite32(shown.cut)
    return arrays


def _finite32(values: Array) -> Array:
    return np.asarray(np.minimum(np.maximum(values, -1e30), 1e30).astype(np.float32))


def as_tensors(scene: object) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return anchor, positive and negative of a scene as float64 tensors, shape (2,) each."""
    a, p, n = (torch.tensor(getattr(scene, name), dtype=torch.float64) for name in POINTS)
    return a, p, n


@cache
def _is_positive(name: str) -> bool:
    """Return True if the raw energy of the loss is nonnegative on 512 random triplets of sizes 0.01 to 100."""
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(3, 512, 2, generator=generator, dtype=torch.float64) * torch.logspace(-2, 2, 512)[:, None]
    return bool((losses.create(name).raw(*points) >= 0).all())


def _hover(scene: Scene, at: tuple[float, ...]) -> dict[str, Any]:
    """Return loss, force and distances between the points with the point `scene.probe` moved to position `at`."""
    loss = scene.module()
    field = field_table(loss, *as_tensors(scene), probe=scene.probe, at=torch.tensor(at, dtype=torch.float64))
    points = {"anchor": scene.anchor, "positive": scene.positive, "negative": scene.negative} | {scene.probe: at}
    names = list(points)
    return {
        "at": at,
        "raw": number(float(field.raw)),
        "energy": number(float(field.energy)),
        "force": (field.force + 0.0).tolist(),
        "hit": bool(field.active),
        "edges": {
            x[0] + y[0]: math.dist(points[x], points[y])
            for x, y in ((names[0], names[1]), (names[0], names[2]), (names[1], names[2]))
        },
    }


def _region(scene: Scene) -> dict[str, Any] | None:
    """Return shape and area of the active region, the set of positions of the negative at which the loss is active."""
    if scene.probe != "negative":
        return None
    from dmlcore.loss_analysis.active_region import (
        active_region,  # imported late because loading scipy would delay the first field
    )

    region = active_region(scene.module(), scene.anchor, scene.positive)
    return {
        "shape": region.shape,
        "area": number(region.area),
        "latex": statements(region.latex) if region.latex else None,
        "closed": region.closed_form,
    }


def _has_margins(scene: Scene) -> bool:
    return scene.hyper.keys() >= {"s", "r", "rho", "m1"}


def _margins(scene: Scene, batch: Any) -> list[dict[str, Any]]:
    """Return the buttons that set m1 or rho by formula, each with the formula in symbols and with numbers inserted."""
    if not _has_margins(scene):
        return []
    s, r, rho = (float(scene.hyper[k]) for k in ("s", "r", "rho"))
    batch = batch if isinstance(batch, dict) else {}
    B, C = (round(bounded(batch.get(key), 0, 100_000, default)) for key, default in (("B", 32), ("C", 4)))
    d = math.dist(scene.anchor, scene.positive)
    return [
        _worked(
            lambda: explain_margin_for_ellipse(d, RANKING_MARGIN, s, rho),
            lambda m1: {"m1": m1, "r": 0},
            "Margin for the ellipse: r = 0, m₁ = {:.6g}",
            "For r = 0: the ellipse around both ranking discs (margin 0.1), as in Appendix B.",
        ),
        _worked(
            lambda: explain_margin_enclosing(d, RANKING_MARGIN, s, r, rho),
            lambda m1: {"m1": m1},
            "Enclosing margin: m₁ = {:.6g}",
            "The smallest margin whose outer boundary contains both ranking discs, for this r.",
        ),
        _worked(
            lambda: explain_balanced_rho(B, C),
            lambda ratio: {"rho": ratio},
            "Balanced ρ = {:.6g}",
            "All links of the batch have equal weight (Eq. 3.19).",
        )
        | {"batch": True},
    ]


def _worked(
    explain: Callable[[], Worked], sets: Callable[[float], dict[str, float]], label: str, note: str
) -> dict[str, Any]:
    try:
        example = explain()
    except (ValueError, OverflowError) as error:
        return {"error": f"{label.split(':')[0].split('=')[0].strip()}: {error}"}
    return {
        "label": label.format(example.value),
        "set": sets(example.value),
        "latex": [*example.symbols, *example.numbers],
        "note": note,
    }


def _heavy(request: Request) -> bool:
    return bounded(request.get("n"), 0, FINEST, INLINE) > INLINE


WORKERS = WorkerPool(__name__)
ROUTES: list[BaseRoute] = [socket_route("/api/field", answer, heavy=_heavy, pool=WORKERS)]
