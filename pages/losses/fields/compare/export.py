"""A comparison to export: its arrays as npz, its planes as SVG, PDF or PNG; both by the link of the page."""

from __future__ import annotations

import io
import json

import numpy as np
import torch
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dmlcore import losses
from dmlcore.figures.comparisons import ComparisonPlane, draw_comparison
from dmlcore.figures.fields import save_figure
from dmlcore.typing import Array
from pages.losses.fields.compare import sameness
from pages.losses.fields.compare.service import axes, read_as, readout, scanned, signed, tensors
from pages.losses.fields.compare.state import ComparisonView

NODES = 141
TYPES = {"svg": "image/svg+xml", "pdf": "application/pdf", "png": "image/png"}


def arrays(comparison: ComparisonView, n: int = NODES) -> dict[str, Array]:
    """Everything shown, float64: x (n,), y (n,); by panel raw, energy, force, active; the differences of the pair."""
    x, y = axes(comparison, n)
    named: dict[str, Array] = {"x": x.numpy(), "y": y.numpy()}
    fields = [scanned(v, comparison, x, y) for v in read_as(comparison)]
    for k, field in enumerate(fields, start=1):
        for name in ("raw", "energy", "force", "active"):
            named[f"{name}{k}"] = getattr(field, name).numpy()
    first, second = (fields[k] for k in comparison.pair)
    named["energy_difference"] = (first.energy - second.energy).numpy()
    named["force_difference"] = (first.force - second.force).numpy()
    return named


def figure(comparison: ComparisonView, format: str, *, dark: bool = False) -> bytes:
    """The planes and what is left of the pair, as svg, pdf or png."""
    x, y = axes(comparison, NODES)
    variants = read_as(comparison)
    planes = [
        ComparisonPlane(
            _title(comparison, k),
            scanned(variant, comparison, x, y),
            np.array(readout(variant, comparison)["forces"]),
            variant.loss.m2,
            variant.clamp,
        )
        for k, variant in enumerate(variants)
    ]
    verdict = sameness.judge(comparison)
    drawn = draw_comparison(
        planes,
        x.numpy(),
        y.numpy(),
        torch.stack(tensors(comparison)).numpy(),
        view=comparison.view,
        pair=comparison.pair,
        shade=comparison.shade,
        signed=signed(comparison),
        region=comparison.region,
        arrows=comparison.arrows,
        probe=comparison.probe,
        caption=f"{'The same loss' if verdict['same'] else 'Different losses'}. {verdict['sentence']}",
        dark=dark,
    )
    return save_figure(drawn, format=format)


def _title(comparison: ComparisonView, k: int) -> str:
    panel, factor = comparison.panels[k], read_as(comparison)[k].factor
    sliders = losses.formula(panel.loss).sliders
    values = ", ".join(
        f"{name} = {v if isinstance(v, str) else f'{v:.4g}'}" for name, v in panel.hyper.items() if name in sliders
    )
    times = "" if abs(factor - 1) < 1e-9 else f"{factor:.4g} × "
    return f"{k + 1}  {times}{losses.formula(panel.loss).title}\n{values}"


def _arrays(request: Request) -> Response:
    comparison = ComparisonView.from_query(dict(request.query_params))
    file = io.BytesIO()
    note = json.dumps(comparison.to_json() | {"same": sameness.judge(comparison)})
    np.savez_compressed(file, comparison=np.array(note), **arrays(comparison))  # type: ignore[arg-type]
    return _file(file.getvalue(), "npz", "application/octet-stream")


def _figure(request: Request) -> Response:
    format = request.path_params["format"]
    if format not in TYPES:
        return Response(status_code=404)
    query = dict(request.query_params)
    return _file(figure(ComparisonView.from_query(query), format, dark=query.get("dark") == "1"), format, TYPES[format])


def _file(content: bytes, suffix: str, media: str) -> Response:
    headers = {
        "Content-Disposition": f'attachment; filename="comparison.{suffix}"',
        "X-Content-Type-Options": "nosniff",
    }
    return Response(content, media_type=media, headers=headers)


ROUTES: list[BaseRoute] = [Route("/api/compare.npz", _arrays), Route("/api/compare.{format}", _figure)]
