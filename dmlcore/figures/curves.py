"""Training curves of several runs over the same steps, with one hover for all panels (Vega-Lite, as Altair speaks it).

The specification is a plain dictionary: altair's own composition makes one hover for each panel, and a specification
that stays the same while only the rows change is redrawn without flicker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dmlcore.figures import baselines

MOST = 300  # points of a curve at most: about one per three pixels
# Okabe-Ito, in an order that stays apart under colour blindness; each run has its own dashes as well.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#8C6BB1", "#7F7F7F")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [4, 4], [10, 3], [3, 1], [6, 2, 1, 2])

Spec = dict[str, Any]
Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Curve:
    """One quantity of one run, named as in the legend: steps (n,) ascending from 0 or 1, values (n,) finite."""

    run: str
    steps: NDArray[np.int64]
    values: NDArray[np.float64]


@dataclass(frozen=True)
class Panel:
    """One of the stacked charts; unit: d3 number format of axis and tooltip; height in pixels; levels: baselines.

    bend: where a scale that shows small values beside large ones turns from linear to logarithmic; None: linear.
    """

    title: str
    curves: Sequence[Curve]
    unit: str = ".3~g"
    height: int = 190
    levels: Mapping[str, float] = field(default_factory=dict)
    bend: float | None = None


def linked(panels: Sequence[Panel], *, steps: int) -> tuple[Spec, Columns]:
    """Vega-Lite specification and rows of the panels, one above the other, over the steps 0..`steps`.

    Lines are means over `interval` steps, the band behind them is the range of the values there.
    """
    runs = list(dict.fromkeys(curve.run for panel in panels for curve in panel.curves))
    hover = {"type": "point", "fields": ["tick"], "nearest": True, "on": "pointerover", "clear": "pointerout"}
    spec: Spec = {
        "params": [{"name": "hover", "select": hover, "views": [_points(i) for i in range(len(panels))]}],
        "vconcat": [_panel(i, panel, _by_run(runs), steps, last=panel is panels[-1]) for i, panel in enumerate(panels)],
        "spacing": 14,
        "autosize": {"type": "fit-x", "contains": "padding"},
    }
    return spec, table(panels)


def table(panels: Sequence[Panel]) -> Columns:
    """One row per drawn point; `tick` numbers the intervals of steps, which all panels and runs share."""
    curves = [(panel.title, curve) for panel in panels for curve in panel.curves if len(curve.steps)]
    width = interval(max((int(curve.steps[-1]) for _, curve in curves), default=1))
    parts = [thin(curve, width) | {"run": curve.run, "panel": title} for title, curve in curves]
    names = ("panel", "run", "tick", "step", "value", "low", "high")
    if not parts:
        return {name: np.empty(0) for name in names}
    sizes = [len(part["step"]) for part in parts]
    # A label becomes as many copies of itself as there are points.
    filled = [[np.broadcast_to(part[name], size) for part, size in zip(parts, sizes, strict=True)] for name in names]
    return dict(zip(names, map(np.concatenate, filled), strict=True))


def interval(steps: int) -> int:
    """The smallest power of two that cuts `steps` into at most MOST intervals: it grows seldom, so points stay put."""
    return 1 << max(0, -(-steps // MOST) - 1).bit_length()


def thin(curve: Curve, width: int) -> dict[str, Any]:
    """Mean, smallest and largest value of each interval of `width` steps, placed at its last step so far.

    Step 0, before training, is an interval of its own.
    """
    tick = -(-curve.steps // width)
    starts = np.flatnonzero(np.diff(tick, prepend=-1))
    ends = np.append(starts[1:], len(tick))
    return {
        "tick": tick[starts],
        "step": curve.steps[ends - 1],
        "value": np.add.reduceat(curve.values, starts) / (ends - starts),
        "low": np.minimum.reduceat(curve.values, starts),
        "high": np.maximum.reduceat(curve.values, starts),
    }


def _points(number: int) -> str:
    return f"points{number}"


def _by_run(runs: Sequence[str]) -> Mapping[str, Any]:
    """Colour and dashes by run in one legend; none for a single run."""
    legend = {
        "title": None,
        "orient": "top",
        "columns": 2,
        "labelLimit": 420,
        "symbolType": "stroke",
        "symbolSize": 600,
    }
    legend |= {"symbolOpacity": 1, "symbolStrokeWidth": 3, "symbolFillColor": "transparent"}
    shared = {"field": "run", "type": "nominal", "legend": legend if len(runs) > 1 else None}
    cycle = range(len(runs))
    colours = {"domain": runs, "range": [COLOURS[i % len(COLOURS)] for i in cycle]}
    dashes = {"domain": runs, "range": [DASHES[i % len(DASHES)] for i in cycle]}
    return {"color": shared | {"scale": colours}, "strokeDash": shared | {"scale": dashes}}


def _panel(number: int, panel: Panel, by_run: Mapping[str, Any], steps: int, *, last: bool) -> Spec:
    x = {
        "field": "step",
        "type": "quantitative",
        "title": "step" if last else None,
        "scale": {"domain": [0, max(1, steps)], "nice": False},
        "axis": {"labels": last, "ticks": last, "tickMinStep": 1, "format": ",d"},
    }
    y = {
        "field": "value",
        "type": "quantitative",
        "title": panel.title,
        "scale": {"zero": False} if panel.bend is None else {"type": "symlog", "constant": panel.bend},
        "axis": {"format": panel.unit, "tickCount": 5, "minExtent": 48},
    }
    low, high = y | {"field": "low"}, {"field": "high"}
    tooltip = [
        {"field": "run", "type": "nominal"},
        {"field": "step", "type": "quantitative", "format": ",d"},
        {"field": "value", "type": "quantitative", "title": panel.title, "format": panel.unit},
    ]
    own = [{"filter": {"field": "panel", "equal": panel.title}}]
    hovered = {"param": "hover", "empty": False}
    colour = {"color": by_run["color"]}
    seen = {"opacity": {"condition": hovered | {"value": 1}, "value": 0}, "tooltip": tooltip}
    layers: list[Spec] = [
        {
            "mark": {"type": "area", "opacity": 0.15},
            "transform": own,
            "encoding": {"x": x, "y": low, "y2": high, **colour},
        },
        # Filtered from the rows of all panels, so that the rule also stands where this one has no point.
        {
            "mark": {"type": "rule", "color": "#888888"},
            "transform": [{"filter": hovered}],
            "encoding": {"x": {"aggregate": "max", "field": "step", "type": "quantitative"}},
        },
        {"mark": {"type": "line", "strokeWidth": 2}, "transform": own, "encoding": {"x": x, "y": y, **by_run}},
        {
            "name": _points(number),
            "mark": {"type": "point", "filled": True, "size": 60},
            "transform": own,
            "encoding": {"x": x, "y": y, **colour, **seen},
        },
    ]
    return {"height": panel.height, "layer": [*layers, *baselines.across(panel.levels, y)]}
