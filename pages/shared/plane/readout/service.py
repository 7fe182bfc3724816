"""Numbers displayed next to a triplet: for the triplet, the pointer position, and the anchor-positive pair."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from dmlcore import losses
from dmlcore.geometry import field_table
from dmlcore.geometry.derivations import (
    Worked,
    explain_balanced_rho,
    explain_margin_enclosing,
    explain_margin_for_ellipse,
)
from dmlcore.geometry.margins import RANKING_MARGIN
from pages.shared.plane.state import POINTS, Scene
from pages.shared.server.wire import number
from pages.shared.state.untrusted import bounded
from pages.shared.words.formulas import statements


def as_tensors(scene: object) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return anchor, positive and negative of a scene as float64 tensors, shape (2,) each."""
    a, p, n = (torch.tensor(getattr(scene, name), dtype=torch.float64) for name in POINTS)
    return a, p, n


@cache
def is_positive(name: str) -> bool:
    """Return True if the raw energy of the loss is nonnegative on 512 random triplets of sizes 0.01 to 100."""
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(3, 512, 2, generator=generator, dtype=torch.float64) * torch.logspace(-2, 2, 512)[:, None]
    return bool((losses.create(name).raw(*points) >= 0).all())


def place(scene: Scene, at: tuple[float, ...]) -> dict[str, Any]:
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


def describe_pair(scene: Scene, request: dict[str, Any]) -> dict[str, Any]:
    """Return shape and area of the negative's active region; add margin buttons if the request has a "batch".

    The active region is the set of positions of the negative at which the loss is active.
    """
    about = {"region": _region(scene), "has_margins": _has_margins(scene)}
    return about | ({"margins": _margins(scene, request["batch"])} if "batch" in request else {})


def _region(scene: Scene) -> dict[str, Any] | None:
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
