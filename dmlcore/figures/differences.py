"""Charts of a retrieval difference: every query in A and in B, and how many flipped between snapshots (Vega-Lite)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dmlcore.figures.curves import Columns, Spec

Floats = NDArray[np.float64]
RIGHT, WRONG, QUIET = "#009E73", "#D55E00", "#7F7F7F"
KINDS = ("stayed right", "right in B alone", "right in A alone", "stayed wrong")
MOST_POINTS = 3000  # of more, the counts in a lattice
CELLS = 25
PICKED = "picked"  # the selection of the scatter: field `sample`


def scatter(
    before: Floats, after: Floats, right: NDArray[np.bool_], samples: NDArray[np.int64]
) -> tuple[Spec, Columns]:
    """AP@R of every query in A (x) and B (y), the diagonal between them; of many queries their number in each cell.

    before, after (n,) in 0..1; right (2, n): the nearest neighbour is, in A and in B; samples (n,): names of points.
    """
    axes = {
        axis: {
            "field": axis,
            "type": "quantitative",
            "title": f"AP@R in {side}",
            "scale": {"domain": [-0.03, 1.03], "nice": False},
            "axis": {"format": "%", "values": [0, 0.25, 0.5, 0.75, 1], "grid": True},
        }
        for axis, side in (("x", "A"), ("y", "B"))
    }
    diagonal = {
        "data": {"values": [{"x": 0, "y": 0}, {"x": 1, "y": 1}]},
        "mark": {"type": "line", "color": QUIET, "strokeDash": [4, 4], "strokeWidth": 1},
        "encoding": axes,
    }
    layer, columns = _points(before, after, right, samples) if len(before) <= MOST_POINTS else _cells(before, after)
    layer["encoding"] = axes | layer["encoding"]
    return {"layer": [diagonal, layer], "height": 350, "autosize": {"type": "fit", "contains": "padding"}}, columns


def _points(
    before: Floats, after: Floats, right: NDArray[np.bool_], samples: NDArray[np.int64]
) -> tuple[Spec, Columns]:
    kind = np.select([right[0] & right[1], right[1], right[0]], [0, 1, 2], 3)
    order = np.argsort(np.isin(kind, (1, 2)), kind="stable")  # what flipped lies on top
    columns: Columns = {"x": before, "y": after, "sample": samples, "kind": np.array(KINDS, dtype=object)[kind]}
    shown = {"domain": list(KINDS), "range": [QUIET, RIGHT, WRONG, QUIET]}
    shapes = {"domain": list(KINDS), "range": ["circle", "triangle-up", "square", "cross"]}
    legend = {"title": None, "orient": "bottom", "columns": 2, "symbolOpacity": 1, "offset": 4, "columnPadding": 12}
    layer: Spec = {
        "params": [{"name": PICKED, "select": {"type": "point", "fields": ["sample"]}}],
        "mark": {"type": "point", "filled": True, "size": 46, "strokeWidth": 1.2, "cursor": "pointer"},
        "encoding": {
            "color": {"field": "kind", "type": "nominal", "scale": shown, "legend": legend},
            "shape": {"field": "kind", "type": "nominal", "scale": shapes, "legend": legend},
            "opacity": {"condition": {"param": PICKED, "value": 0.7}, "value": 0.12},
            "tooltip": [
                {"field": "sample", "title": "sample"},
                {"field": "x", "title": "AP@R in A", "format": ".1%"},
                {"field": "y", "title": "AP@R in B", "format": ".1%"},
                {"field": "kind", "title": "nearest neighbour"},
            ],
        },
    }
    return layer, {name: values[order] for name, values in columns.items()}


def _cells(before: Floats, after: Floats) -> tuple[Spec, Columns]:
    counts, _, _ = np.histogram2d(before, after, CELLS, ((0, 1), (0, 1)))
    column, row = np.nonzero(counts)
    side = 1 / CELLS
    columns: Columns = {
        "x": column * side,
        "x2": (column + 1) * side,
        "y": row * side,
        "y2": (row + 1) * side,
        "queries": counts[column, row].astype(np.int64),
        "side": np.where(row > column, "B is better", np.where(row < column, "A is better", "about equal")),
    }
    colours = {"domain": ["B is better", "A is better", "about equal"], "range": [RIGHT, WRONG, QUIET]}
    layer: Spec = {
        "mark": {"type": "rect"},
        "encoding": {
            "x2": {"field": "x2"},
            "y2": {"field": "y2"},
            "color": {
                "field": "side",
                "type": "nominal",
                "scale": colours,
                "legend": {"title": None, "orient": "bottom"},
            },
            "opacity": {
                "field": "queries",
                "type": "quantitative",
                "scale": {"type": "log", "range": [0.15, 1]},
                "legend": None,
            },
            "tooltip": [{"field": "queries", "format": ","}, {"field": "side", "title": "cell"}],
        },
    }
    return layer, columns


def turnover(
    steps: Sequence[int], right: Floats, gained: NDArray[np.int64], lost: NDArray[np.int64]
) -> tuple[Spec, Columns]:
    """Between each snapshot and the next: queries gained (up) and lost (down), under the share that is right.

    steps (S,) ascending; right (S,) in 0..1; gained, lost (S - 1,).
    """
    begin, end = np.array(steps[:-1]), np.array(steps[1:])
    between = len(begin)
    columns: Columns = {
        "panel": np.array([*["flips"] * (2 * between), *["right"] * len(steps)], dtype=object),
        "from": np.concatenate([begin, begin, steps]),
        "to": np.concatenate([end, end, steps]),
        "value": np.concatenate([gained, -lost, right]).astype(float),
        "queries": np.concatenate([gained, lost, np.zeros(len(steps), np.int64)]),
        "what": np.array([*["gained"] * between, *["lost"] * between, *["right"] * len(steps)], dtype=object),
    }
    scale = {"domain": [int(steps[0]), int(steps[-1])], "nice": False}
    x = {"field": "from", "type": "quantitative", "scale": scale}
    pad = 0.08 * (float(np.ptp(right)) or 0.1)
    share: Spec = {
        "transform": [{"filter": "datum.panel === 'right'"}],
        "width": "container",
        "height": 96,
        "mark": {"type": "line", "color": "#0072B2", "point": {"filled": True, "size": 40}},
        "encoding": {
            "x": x | {"axis": {"labels": False, "title": None}},
            "y": {
                "field": "value",
                "type": "quantitative",
                "title": "R@1",
                "axis": {"format": "%", "tickCount": 4},  # with as many digits as its ticks need
                "scale": {"domain": [float(right.min()) - pad, min(1.0, float(right.max()) + pad)], "nice": False},
            },
            "tooltip": [
                {"field": "from", "title": "step", "format": ","},
                {"field": "value", "title": "R@1", "format": ".1%"},
            ],
        },
    }
    colours = {"domain": ["gained", "lost"], "range": [RIGHT, WRONG]}
    flips: Spec = {
        "transform": [{"filter": "datum.panel === 'flips'"}],
        "width": "container",
        "height": 140,
        "mark": {"type": "rect", "xOffset": 0.5, "x2Offset": -0.5},
        "encoding": {
            "x": x | {"title": "step", "axis": {"format": "~s", "tickCount": 8, "tickMinStep": 1}},
            "x2": {"field": "to"},
            "y": {
                "field": "value",
                "type": "quantitative",
                "stack": None,
                "title": "gained, lost",
                "axis": {"format": "~s", "tickCount": 5, "tickMinStep": 1},
            },
            "y2": {"datum": 0},
            "color": {
                "field": "what",
                "type": "nominal",
                "scale": colours,
                "legend": {"title": None, "orient": "bottom"},
            },
            "tooltip": [
                {"field": "what", "title": "queries"},
                {"field": "queries", "title": "number", "format": ","},
                {"field": "from", "title": "from step", "format": ","},
                {"field": "to", "title": "to step", "format": ","},
            ],
        },
    }
    return {"vconcat": [share, flips], "spacing": 6, "autosize": {"type": "fit-x", "contains": "padding"}}, columns
