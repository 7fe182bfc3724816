"""Export of the Compare page: arrays as npz, selected by the page's URL query string."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
from starlette.routing import BaseRoute

from pages.losses.fields.compare import sameness
from pages.losses.fields.compare.service import axes, read_as, scanned
from pages.losses.fields.compare.state import ComparisonView
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


def export(query: Query, format: str, dark: bool) -> tuple[bytes, str]:
    """Return the content and the name of the file that a URL query string requests."""
    comparison, file = ComparisonView.from_query(query), io.BytesIO()
    note = json.dumps(comparison.to_json() | {"same": sameness.judge(comparison)})
    np.savez_compressed(file, comparison=np.array(note), **arrays(comparison))
    return file.getvalue(), f"comparison.{format}"


ROUTES: list[BaseRoute] = [export_route("/api/compare", export, ("npz",))]
