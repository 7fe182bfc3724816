"""Charts of what classes a network confuses, scores by class and hubs (Vega-Lite, as Altair speaks it).

Names of classes are data: they reach the chart as values of columns and of a parameter, never as text of an expression.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dmlcore.figures.curves import COLOURS, DASHES, Columns, Spec
from dmlcore.figures.scales import round_top

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RIGHT, WRONG, MARKED = "#009E73", "#D55E00", "#0072B2"
SIDE, LEAST_CELL, MOST_CELL = 560, 14, 44  # pixels: of the whole matrix, and of a cell of it, which is square
NUMBERED = 28  # pixels of a cell from which its number stands in it
LONGEST_NAME = 120  # pixels
STRONG = 0.35  # share of the top of the scale from which white is read better on a cell
MOST_POINTS = 500  # classes in the ranking: of more, evenly chosen ranks
MOST_BARS = 50
GREY = "#7F7F7F"
TICKS = (0, 1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000)
CELL = "cell"  # the selection of the matrix: fields i and j, labels of classes


def matrix(
    shares: Floats, labels: Ints, names: Sequence[str], chosen: tuple[int, int] | None, *, ink: str = "#333"
) -> tuple[Spec, Columns]:
    """Shares (c, c) of the neighbours of the row's class that are of the column's, classes in the given order.

    labels (c,) and names (c,) of the classes; chosen: the labels of the framed cell; ink: of numbers on pale cells.
    Own class green, others orange, the more opaque the larger the share; the scale ends at the largest share of another
    class. Cells are square and every class is named, so that many classes need as many pixels, to be scrolled.
    """
    row, column = np.nonzero(shares)
    if chosen is not None and set(chosen) <= set(labels.tolist()):  # framed even where nothing is confused
        at = [int(np.flatnonzero(labels == label)[0]) for label in chosen]
        if not shares[at[0], at[1]]:
            row, column = np.append(row, at[0]), np.append(column, at[1])
    off = shares[row, column][row != column]
    top = round_top(float(off.max(initial=0.0)), 1.0)
    text = np.array(names, dtype=object)
    columns: Columns = {
        "i": labels[row],
        "j": labels[column],
        "query": text[row],
        "neighbour": text[column],
        "share": shares[row, column],
        "percent": np.array([f"{100 * s:.{0 if s >= 0.01 else 1}f}" for s in shares[row, column]], dtype=object),
        "marked": np.array([(labels[r], labels[c]) == chosen for r, c in zip(row, column, strict=True)], bool),
    }
    cell = int(np.clip(SIDE // len(labels), LEAST_CELL, MOST_CELL))
    axis = {
        "ticks": False,
        "domain": False,
        "labelExpr": "names[datum.value]",
        "labelLimit": LONGEST_NAME,
        "labelOverlap": False,
        "labelFontSize": 11 if cell >= 18 else 9,
    }
    scale = {"domain": labels.tolist(), "paddingInner": 0.04, "paddingOuter": 0}
    rect: Spec = {
        "params": [{"name": CELL, "select": {"type": "point", "fields": ["i", "j"], "on": "click", "toggle": False}}],
        "mark": {"type": "rect", "cursor": "pointer"},
        "encoding": {
            "color": {"condition": {"test": "datum.i === datum.j", "value": RIGHT}, "value": WRONG},
            "opacity": {
                "field": "share",
                "type": "quantitative",
                "scale": {"type": "sqrt", "domain": [0, top], "range": [0.04, 1], "clamp": True},
                "legend": {
                    "title": f"share of the neighbours{', numbers in per cent' if cell >= NUMBERED else ''}",
                    "orient": "bottom",
                    "direction": "horizontal",
                    "format": ".2~%",
                    "symbolFillColor": WRONG,
                    "symbolStrokeWidth": 0,
                    "symbolType": "square",
                    "tickCount": 4,
                },
            },
            "stroke": {"condition": {"test": "datum.marked", "value": MARKED}, "value": None},
            "strokeWidth": {"condition": {"test": "datum.marked", "value": 3}, "value": 0},
            "tooltip": [
                {"field": "query", "type": "nominal", "title": "queries of"},
                {"field": "neighbour", "type": "nominal", "title": "neighbours of"},
                {"field": "share", "type": "quantitative", "title": "share", "format": ".2~%"},
            ],
        },
    }
    number: Spec = {  # without a tooltip, so that the pointer meets the cell below
        "mark": {"type": "text", "fontSize": 11},
        "encoding": {
            "text": {"field": "percent", "type": "nominal"},
            "color": {"condition": {"test": f"datum.share >= {STRONG * top:.6g}", "value": "#fff"}, "value": ink},
        },
    }
    place = {"type": "ordinal", "scale": scale}
    spec: Spec = {
        "params": [
            {"name": "names", "value": {str(label): name for label, name in zip(labels.tolist(), names, strict=True)}}
        ],
        "width": {"step": cell},
        "height": {"step": cell},
        "autosize": {"type": "pad"},
        "layer": [rect, *([number] if cell >= NUMBERED else [])],
        "encoding": {
            "x": place
            | {"field": "j", "title": "class of the neighbour", "axis": axis | {"labelAngle": -60, "orient": "top"}},
            "y": place | {"field": "i", "title": "class of the query", "axis": axis},
        },
    }
    return spec, columns


def ranking(names: Sequence[str], map_at_r: Floats, recall_at_1: Floats, queries: Ints) -> tuple[Spec, Columns]:
    """MAP@R (discs) and R@1 (squares) of classes that are given worst first, over their rank."""
    rank = np.unique(np.linspace(0, len(names) - 1, min(len(names), MOST_POINTS)).round().astype(int))
    text = np.array(names, dtype=object)[rank]
    columns: Columns = {
        "rank": np.tile(rank + 1, 2),
        "class": np.tile(text, 2),
        "score": np.concatenate([map_at_r[rank], recall_at_1[rank]]),
        "of": np.repeat(["MAP@R", "R@1"], len(rank)),
        "queries": np.tile(queries[rank], 2),
    }
    kinds = {"field": "of", "type": "nominal", "legend": {"title": None, "orient": "top"}}
    domain = ["MAP@R", "R@1"]
    spec: Spec = {
        "mark": {"type": "point", "filled": True, "size": 46 if len(rank) <= 120 else 16, "opacity": 0.85},
        "height": 300,
        "encoding": {
            "x": {
                "field": "rank",
                "type": "quantitative",
                "title": "class, worst MAP@R first",
                "axis": {"tickMinStep": 1, "format": ",d"},
                "scale": {"nice": False, "domain": [0.5, len(names) + 0.5]},
            },
            "y": {"field": "score", "type": "quantitative", "title": None, "axis": {"format": "%"}},
            "color": kinds | {"scale": {"domain": domain, "range": [COLOURS[0], COLOURS[1]]}},
            "shape": kinds | {"scale": {"domain": domain, "range": ["circle", "square"]}},
            "tooltip": [
                {"field": "class", "type": "nominal"},
                {"field": "of", "type": "nominal", "title": "score"},
                {"field": "score", "type": "quantitative", "format": ".1%", "title": "value"},
                {"field": "queries", "type": "quantitative", "format": ",d"},
            ],
        },
    }
    return spec, columns


def occurrences(counts: Ints, chance: Floats, threshold: float) -> tuple[Spec, Columns]:
    """How many samples are a neighbour how often: counts (m,) of N_k = 0..m-1, and chance (m,), what luck would give.

    Bars on a logarithmic scale, chance a dashed line, the vertical line where hubs begin.
    """
    width = -(-len(counts) // MOST_BARS)
    start = np.arange(0, len(counts), width)
    columns: Columns = {
        "from": start - 0.5,
        "to": start + width - 0.5,
        "samples": np.add.reduceat(counts, start),
        "chance": np.add.reduceat(chance, start),
        "N_k": np.array([f"{a}" if width == 1 else f"{a} to {a + width - 1}" for a in start], object),
    }
    columns["middle"] = (columns["from"] + columns["to"]) / 2
    x = {
        "field": "from",
        "type": "quantitative",
        "title": "times a neighbour, N_k",
        "scale": {"domain": [-0.5, float(columns["to"][-1])], "nice": False},
        "axis": {"tickMinStep": 1, "format": ",d"},
    }
    y = {
        "field": "samples",
        "type": "quantitative",
        "title": "samples",
        "scale": {"type": "symlog"},
        "axis": {"values": [v for v in TICKS if v <= max(1, counts.max())], "format": ",d"},
    }
    tooltip = [
        {"field": "N_k", "type": "nominal", "title": "times a neighbour"},
        {"field": "samples", "type": "quantitative", "format": ",d"},
        {"field": "chance", "type": "quantitative", "format": ",.1~f", "title": "by chance"},
    ]
    layers: list[Spec] = [
        {
            "mark": {"type": "bar", "color": COLOURS[0], "opacity": 0.75, "binSpacing": 1},
            "encoding": {"x": x | {"bin": {"binned": True}}, "x2": {"field": "to"}, "y": y, "tooltip": tooltip},
        },
        {
            "mark": {"type": "line", "color": GREY, "strokeDash": DASHES[1], "strokeWidth": 2},
            "encoding": {"x": x | {"field": "middle"}, "y": y | {"field": "chance"}},
        },
        {
            "data": {"values": [{"a": threshold}]},
            "mark": {"type": "rule", "color": WRONG, "size": 2},
            "encoding": {"x": {"field": "a", "type": "quantitative"}},
        },
    ]
    return {"layer": layers, "height": 280}, columns


def by_chance(samples: int, queries: int, k: int, most: int) -> Floats:
    """How many samples would be a neighbour 0..most times if the k neighbours of each query were drawn by lot."""
    from scipy.special import gammaln  # slow to import

    share = min(1 - 1e-12, k / max(1, samples - 1))
    times = np.arange(most + 1)
    inside = times <= queries
    logs = gammaln(queries + 1) - gammaln(times + 1) - gammaln(np.maximum(queries - times, 0) + 1)
    logs = logs + times * np.log(share) + (queries - times) * np.log1p(-share)
    return np.asarray(np.where(inside, samples * np.exp(logs), 0.0), np.float64)
