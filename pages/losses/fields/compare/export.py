"""Export of the Compare page: arrays as npz, figures as SVG, PDF or PNG, selected by the page's URL query string."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import torch
from starlette.routing import BaseRoute

from dmlcore import losses
from dmlcore.figures.comparisons import ComparisonPlane, draw_comparison
from dmlcore.figures.fields import FORMATS, save_figure
from pages.losses.fields.compare import sameness
from pages.losses.fields.compare.service import axes, read_as, readout, scanned, signed
from pages.losses.fields.compare.state import ComparisonView
from pages.shared.plane.service import as_tensors
from pages.shared.server.exports import Query, export_route

NODES = 141


def arrays(comparison: ComparisonView, n: int = NODES) -> dict[str, Any]:
    """Return the fields on n x n nodes as float64 arrays.

    Keys: x and y (n,); raw, energy, force and active, each followed by the number of the panel, from 1;
    energy_difference and force_difference for the two compared losses.
    """
    x, y = axes(comparison, n)
    named: dict[str, Any] = {"x": x.numpy(), "y": y.numpy()}
    fields = [scanned(v, comparison, x, y) for v in read_as(comparison)]
    for k, field in enumerate(fields, start=1):
        for name in ("raw", "energy", "force", "active"):
            named[f"{name}{k}"] = getattr(field, name).numpy()
    first, second = (fields[k] for k in comparison.pair)
    named["energy_difference"] = (first.energy - second.energy).numpy()
    named["force_difference"] = (first.force - second.force).numpy()
    return named


def figure(comparison: ComparisonView, format: str, *, dark: bool = False) -> bytes:
    """Return an svg, pdf or png figure with the field of each loss and the difference of the two compared losses."""
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
        torch.stack(as_tensors(comparison)).numpy(),
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


def export(query: Query, format: str, dark: bool) -> tuple[bytes, str]:
    """Return the content and the name of the file that a URL query string requests."""
    comparison, name = ComparisonView.from_query(query), f"comparison.{format}"
    if format != "npz":
        return figure(comparison, format, dark=dark), name
    file = io.BytesIO()
    note = json.dumps(comparison.to_json() | {"same": sameness.judge(comparison)})
    np.savez_compressed(file, comparison=np.array(note), **arrays(comparison))
    return file.getvalue(), name


ROUTES: list[BaseRoute] = [export_route("/api/compare", export, (*FORMATS, "npz"))]
