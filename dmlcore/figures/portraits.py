"""Charts of the distances of a whole test part: histograms, density of triplets over (d_ap, d_an) (Vega-Lite)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dmlcore.figures.confusions import GREY, MARKED, RIGHT, WRONG
from dmlcore.figures.curves import COLOURS, DASHES, Columns, Spec

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Histograms:
    """Distances of one run: counts (B,) of positives and negatives over edges (B + 1,)."""

    run: str
    edges: Floats
    positives: Ints
    negatives: Ints


def distances(
    of: Sequence[Histograms], windows: Sequence[tuple[float, float]] = (), mean: float | None = None
) -> tuple[Spec, Columns]:
    """Density of positives and of negatives over distance; of a second run as dashed steps over the bars of the first.

    Each has area 1, so that runs with bins of different widths can be compared.

    windows: intervals of the distance, shaded; mean: where a line stands, of the positives they were drawn for.
    """
    parts = [
        (number, h.edges, counts / max(1, counts.sum()), f"{kind}")
        for number, h in enumerate(of)
        for counts, kind in ((h.positives, "same class"), (h.negatives, "other classes"))
    ]
    columns: Columns = {
        "from": np.concatenate([edges[:-1] for _, edges, _, _ in parts]),
        "to": np.concatenate([edges[1:] for _, edges, _, _ in parts]),
        "share": np.concatenate([shares for _, _, shares, _ in parts]),
        "density": np.concatenate([shares / np.diff(edges) for _, edges, shares, _ in parts]),
        "pairs": np.concatenate([np.full(len(shares), kind, object) for _, _, shares, kind in parts]),
        "run": np.concatenate([np.full(len(shares), of[n].run, object) for n, _, shares, _ in parts]),
        "number": np.concatenate([np.full(len(shares), n) for n, _, shares, _ in parts]),
    }
    end = max(float(h.edges[-1]) for h in of)
    colour = {
        "field": "pairs",
        "type": "nominal",
        "scale": {"domain": ["same class", "other classes"], "range": [RIGHT, WRONG]},
        "legend": {"title": None, "orient": "top"},
    }
    x = {"field": "from", "type": "quantitative", "title": "Euclidean distance", "scale": {"domain": [0, end]}}
    y = {
        "field": "density",
        "type": "quantitative",
        "stack": None,
        "axis": {"tickCount": 5},
        "title": "density of pairs",
    }
    tooltip = [
        {"field": "pairs", "type": "nominal"},
        {"field": "from", "type": "quantitative", "format": ".3~f"},
        {"field": "to", "type": "quantitative", "format": ".3~f"},
        {"field": "share", "type": "quantitative", "format": ".2%"},
        *([{"field": "run", "type": "nominal"}] if len(of) > 1 else []),
    ]
    layers: list[Spec] = [
        {
            "data": {"values": [{"a": a, "b": b} for a, b in windows]},
            "mark": {"type": "rect", "opacity": 0.14, "color": MARKED},
            "encoding": {"x": {"field": "a", "type": "quantitative"}, "x2": {"field": "b"}},
        },
        {
            "transform": [{"filter": "datum.number === 0"}],
            "mark": {"type": "bar", "opacity": 0.55, "binSpacing": 0},
            "encoding": {
                "x": x | {"bin": {"binned": True}},
                "x2": {"field": "to"},
                "y": y,
                "color": colour,
                "tooltip": tooltip,
            },
        },
        {
            "transform": [{"filter": "datum.number === 1"}],
            "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 2, "strokeDash": DASHES[1]},
            "encoding": {"x": x, "y": y, "color": colour, "tooltip": tooltip},
        },
    ]
    if mean is not None:
        layers.append(
            {
                "data": {"values": [{"a": mean}]},
                "mark": {"type": "rule", "color": RIGHT, "strokeDash": DASHES[2], "size": 2},
                "encoding": {"x": {"field": "a", "type": "quantitative"}},
            }
        )
    return {"layer": layers, "height": 300}, columns


def portrait(
    d_ap: Floats,
    d_an: Floats,
    reach: float,
    lines: tuple[Sequence[Floats], Sequence[Floats]] = ((), ()),
    *,
    bins: int = 60,
    height: int = 420,
    title: str | None = None,
) -> tuple[Spec, Columns]:
    """Density of triplets (t,) over d_ap across and d_an upwards, both 0..reach, on a logarithmic scale of opacity.

    Dotted: d_an = d_ap, below which a triplet is wrong. lines: polylines (K, 2) where the loss begins, raw = 0, drawn
    solid, and where it is clamped, raw = m2, dashed.
    """
    counts, edges, _ = np.histogram2d(d_ap, d_an, bins=bins, range=[[0, reach], [0, reach]])
    across, up = np.nonzero(counts)
    n = counts[across, up]
    columns: Columns = {
        "ap": edges[across].round(6),
        "ap_to": edges[across + 1].round(6),
        "an": edges[up].round(6),
        "an_to": edges[up + 1].round(6),
        "triplets": n.astype(np.int64),
    }
    small = height < 300
    axis: Spec = {"tickCount": 3 if small else 6, "grid": False}
    x: Spec = {
        "field": "ap",
        "type": "quantitative",
        "title": "d(a, p), to the positive",
        "scale": {"domain": [0, reach], "nice": False},
        "axis": axis,
    }
    y = x | {"field": "an", "title": "d(a, n), to the negative"}
    if small:
        x, y = x | {"title": None}, y | {"title": None}
    drawn = [
        {"line": number, "order": place, "ap": float(point[0]), "an": float(point[1]), "kind": kind}
        for kind, group in zip(("raw = 0", "raw = m2"), lines, strict=True)
        for number, line in enumerate(group)
        for place, point in enumerate(line)
    ]
    layers: list[Spec] = [
        {
            "mark": {"type": "rect", "color": COLOURS[0]},
            "encoding": {
                "x": x,
                "x2": {"field": "ap_to"},
                "y": y,
                "y2": {"field": "an_to"},
                "opacity": {
                    "field": "triplets",
                    "type": "quantitative",
                    "scale": {"type": "log", "domain": [1, max(2, int(n.max(initial=1)))], "range": [0.3, 1]},
                    "legend": None
                    if small
                    else {
                        "title": "triplets",
                        "orient": "bottom",
                        "direction": "horizontal",
                        "symbolFillColor": COLOURS[0],
                        "symbolStrokeWidth": 0,
                        "symbolType": "square",
                        "tickCount": 4,
                        "format": ",d",
                    },
                },
                "tooltip": [
                    {"field": "ap", "type": "quantitative", "format": ".3~f", "title": "d(a, p) from"},
                    {"field": "an", "type": "quantitative", "format": ".3~f", "title": "d(a, n) from"},
                    {"field": "triplets", "type": "quantitative", "format": ",d"},
                ],
            },
        },
        {
            "data": {"values": [{"ap": 0, "an": 0}, {"ap": reach, "an": reach}]},
            "mark": {"type": "line", "color": GREY, "strokeDash": DASHES[2], "strokeWidth": 1.5},
            "encoding": {"x": x, "y": y},
        },
    ]
    if drawn:
        layers.append(
            {
                "data": {"values": drawn},
                "mark": {"type": "line", "color": WRONG, "strokeWidth": 2, "clip": True},
                "encoding": {
                    "x": x,
                    "y": y,
                    "order": {"field": "order"},
                    "detail": {"field": "line"},
                    "strokeDash": {
                        "field": "kind",
                        "type": "nominal",
                        "scale": {"domain": ["raw = 0", "raw = m2"], "range": [DASHES[0], DASHES[1]]},
                        "legend": None
                        if small
                        else {"title": "loss", "orient": "bottom", "symbolStrokeColor": WRONG, "symbolStrokeWidth": 2},
                    },
                },
            }
        )
    spec: Spec = {"layer": layers, "height": height}
    return (spec | {"title": {"text": title, "fontSize": 12, "anchor": "start"}} if title else spec), columns
