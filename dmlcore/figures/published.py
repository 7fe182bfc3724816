"""Charts of published results: scores over a hyper-parameter with the noise band, and duels of losses (Vega-Lite)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dmlcore.figures.curves import COLOURS, DASHES

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
OURS = "#8C6BB1"
CROSS = "M-1,-1L1,1M1,-1L-1,1"
BEHIND, AHEAD = "#D55E00", "#0072B2"

Spec = dict[str, Any]
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Point:
    """A score in per cent at a value of the hyper-parameter; low, high: mean minus and plus a deviation, of ours."""

    series: str
    x: float
    score: float
    words: str
    low: float | None = None
    high: float | None = None


def sweep(
    printed: Sequence[Point],
    ours: Sequence[Point],
    *,
    x_title: str,
    y_title: str,
    band: float,
    height: int = 380,
) -> tuple[Spec, Rows]:
    """Lines of the printed series over the hyper-parameter, our points on top, and the band below the best printed.

    Wide ranges of x are drawn on a scale that is linear around 0 and logarithmic outside.
    """
    names = list(dict.fromkeys(point.series for point in printed))
    values = sorted({point.x for point in (*printed, *ours)})
    wide = max(map(abs, values)) > 2 * min((abs(v) for v in values if v), default=1.0) * 5
    best = max(point.score for point in printed)
    x = {
        "field": "x",
        "type": "quantitative",
        "title": x_title,
        "scale": {"type": "symlog", "constant": 0.05, "nice": False, "padding": 16}
        if wide
        else {"zero": False, "padding": 16},
        "axis": {"values": values, "labelOverlap": "greedy", "grid": False, "format": ".4~g"},
    }
    y = {"field": "score", "type": "quantitative", "title": y_title, "scale": {"zero": False, "padding": 10}}
    tooltip = [
        {"field": "series", "type": "nominal"},
        {"field": "x", "type": "quantitative", "title": x_title},
        {"field": "score", "type": "quantitative", "format": ".2f", "title": y_title},
        {"field": "words", "type": "nominal", "title": "where"},
    ]
    shown = {"title": None, "orient": "bottom", "columns": 5, "labelLimit": 320, "symbolStrokeWidth": 0}
    legend = shown if len(names) > 1 else None
    by = {
        channel: {"field": "series", "type": "nominal", "scale": {"domain": names, "range": found}, "legend": legend}
        for channel, found in (("color", _cycled(COLOURS, names)), ("shape", _cycled(SHAPES, names)))
    }
    dash = {
        "strokeDash": {
            "field": "series",
            "scale": {"domain": names, "range": _cycled(DASHES, names)},
            "legend": None,
        }
    }
    layers: list[Spec] = []
    if band:
        words = f"within {band:g} of the best: the same by the noise"
        layers.append(
            {
                "data": {"values": [{"low": best - band, "high": best, "words": words}]},
                "mark": {"type": "rect", "opacity": 0.16, "color": "#7F7F7F"},
                "encoding": {
                    "y": {"field": "low", "type": "quantitative"},
                    "y2": {"field": "high"},
                    "tooltip": {"field": "words"},
                },
            }
        )
    only = [{"filter": "!datum.ours"}]
    layers += [
        {
            "transform": only,
            "mark": {"type": "line", "strokeWidth": 2},
            "encoding": {"x": x, "y": y, "color": by["color"], **dash},
        },
        {
            "transform": only,
            "mark": {"type": "point", "filled": True, "size": 75, "opacity": 1},
            "encoding": {"x": x, "y": y, "tooltip": tooltip, **by},
        },
    ]
    if ours:
        mine = [{"filter": "datum.ours"}]
        layers += [
            {
                "transform": [*mine, {"filter": "isValid(datum.low)"}],
                "mark": {"type": "rule", "strokeWidth": 2, "color": OURS},
                "encoding": {"x": x, "y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"}},
            },
            {
                "transform": mine,
                "mark": {
                    "type": "point",
                    "shape": CROSS,
                    "size": 60,
                    "strokeWidth": 2.5,
                    "color": OURS,
                    "filled": False,
                },
                "encoding": {"x": x, "y": y, "tooltip": tooltip},
            },
        ]
    rows = [_row(point, False) for point in printed] + [_row(point, True) for point in ours]
    return {"height": height, "layer": layers, "autosize": {"type": "fit-x", "contains": "padding"}}, rows


def duels(names: Sequence[str], found: Sequence[Sequence[tuple[int, int, int]]]) -> tuple[Spec, Rows]:
    """Each row against each column: wins, ties, defeats; blue where the row is ahead, vermillion where behind."""
    rows = [
        {
            "one": one,
            "other": other,
            "share": (wins - defeats) / max(1, wins + ties + defeats),
            "wins": wins,
            "ties": ties,
            "defeats": defeats,
            "text": "" if one == other else f"{wins}" if not ties else f"{wins} + {ties}",
        }
        for one, line in zip(names, found, strict=True)
        for other, (wins, ties, defeats) in zip(names, line, strict=True)
    ]
    axis: Spec = {"title": None, "labelLimit": 150, "domain": False, "ticks": False}
    x = {
        "field": "other",
        "type": "nominal",
        "sort": list(names),
        "axis": {**axis, "orient": "top", "labelAngle": -40, "labelOverlap": False},
    }
    y = {"field": "one", "type": "nominal", "sort": list(names), "axis": axis}
    scale = {"domain": [-1, 0, 1], "range": [BEHIND, "#F3F5F7", AHEAD], "interpolate": "rgb"}
    tooltip = [
        {"field": "one", "type": "nominal", "title": "row"},
        {"field": "other", "type": "nominal", "title": "against"},
        *({"field": name, "type": "quantitative"} for name in ("wins", "ties", "defeats")),
    ]
    layers = [
        {
            "transform": [{"filter": "datum.one !== datum.other"}],
            "mark": {"type": "rect", "cornerRadius": 3},
            "encoding": {
                "color": {"field": "share", "type": "quantitative", "scale": scale, "legend": None},
                "tooltip": tooltip,
            },
        },
        {
            "mark": {"type": "text", "fontSize": 12},
            "encoding": {
                "text": {"field": "text"},
                "color": {"condition": {"test": "datum.share > 0.9", "value": "#FFFFFF"}, "value": "#0F1620"},
                "tooltip": tooltip,
            },
        },
    ]
    encoding = {"x": x, "y": y}
    spec = {
        "height": {"step": 30},
        "layer": layers,
        "encoding": encoding,
        "autosize": {"type": "fit-x", "contains": "padding"},
    }
    return spec, rows


def _row(point: Point, ours: bool) -> dict[str, Any]:
    return {
        "series": point.series,
        "x": point.x,
        "score": point.score,
        "words": point.words,
        "low": point.low,
        "high": point.high,
        "ours": ours,
    }


def _cycled(found: Sequence[Any], names: Sequence[str]) -> list[Any]:
    return [found[i % len(found)] for i in range(len(names))]
