"""Training curves of several runs over the same steps, stacked in panels that all highlight the hovered step.

The hover is a Vega-Lite parameter that lists the views of all panels. The specification is written without altair,
which would take about 20 ms per panel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dmlcore.figures import baselines
from dmlcore.figures.palette import INK, LISTS
from dmlcore.figures.vega_lite import NARROW, Columns, Spec
from dmlcore.typing import Floats, Ints

MOST = 300  # maximum number of points of a curve, about one per three pixels
# Okabe-Ito colours, in an order that remains distinguishable under colour blindness. Each run also has its own dash
# pattern.
COLOURS = LISTS["runs"][False]
DASHES = ([1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [4, 4], [10, 3], [3, 1], [6, 2, 1, 2])
POINTER = {"type": "point", "fields": ["tick"], "nearest": True, "on": "pointerover", "clear": "pointerout"}
# about one tick per 120 pixels, which leaves enough room for six-digit numbers
X_TICKS = {"expr": "max(3, windowSize()[0] / 120)"}
HOVERED = {"param": "hover", "empty": False}


@dataclass(frozen=True)
class RunCurve:
    """Curve of one quantity for one run, or its mean over several runs.

    Attributes:
        run: Name in the legend.
        steps: Ascending steps, starting at 0 or 1, shape (n,).
        values: Finite values, shape (n,).
        low: Lower edge of the band around a mean, shape (n,); None for a single run.
        high: Upper edge of the band around a mean, shape (n,); None for a single run.
    """

    run: str
    steps: Ints
    values: Floats
    low: Floats | None = None
    high: Floats | None = None


@dataclass(frozen=True)
class CurvePanel:
    """One chart of a vertical stack, which shows one quantity.

    Attributes:
        title: Name of the quantity, used as title of the y axis.
        curves: The curves of the panel.
        unit: D3 number format of axis and tooltip.
        height: Height in pixels.
        levels: Baselines as pairs of name and score.
        bend: Value above which the y scale is logarithmic and below which it is linear, for panels with both small and
            large values; None for a linear scale.
        ticks: Tick values to use with `bend`, because Vega-Lite would choose ticks for a linear scale.
    """

    title: str
    curves: Sequence[RunCurve]
    unit: str = ".3~g"
    height: int = 190
    levels: tuple[tuple[str, float], ...] = ()
    bend: float | None = None
    ticks: tuple[float, ...] = ()


def averaged(name: str, curves: Sequence[RunCurve]) -> RunCurve:
    """Return the mean over several runs at each step, with a band from the lowest to the highest value.

    The mean at a step covers only the runs that have a value at that step.
    """
    steps, places, counts = np.unique(
        np.concatenate([curve.steps for curve in curves]), return_inverse=True, return_counts=True
    )
    every = np.concatenate([curve.values for curve in curves])
    low, high = np.full(len(steps), np.inf), np.full(len(steps), -np.inf)
    np.minimum.at(low, places, every)
    np.maximum.at(high, places, every)
    return RunCurve(name, steps, np.bincount(places, every, len(steps)) / counts, low, high)


def linked(
    panels: Sequence[CurvePanel], *, steps: int, forks: Sequence[int] = (), smoothing: float = 0.0
) -> tuple[Spec, Columns]:
    """Return the Vega-Lite specification and rows of the panels, stacked over the steps 0..`steps`.

    Each line shows means over intervals of steps (see `interval`); the band behind it spans the minimum to the maximum
    of each interval.

    Args:
        panels: The charts, top to bottom.
        steps: Last step of the x axis.
        forks: Steps marked by a vertical line, where a run was forked or a projection of chance-constrained training
            ended.
        smoothing: Weight of the past in `smoothed`, in [0, 1). If positive, lines are smoothed and faint lines show the
            unsmoothed means.
    """
    runs = [*dict.fromkeys(curve.run for panel in panels for curve in panel.curves)]
    last = len(panels) - 1
    specification: Spec = {
        "vconcat": [
            {"layer": _layers(panel, number, runs, steps, forks, number == last, smoothing > 0), "height": panel.height}
            for number, panel in enumerate(panels)
        ],
        "params": [{"name": "hover", "select": POINTER, "views": [*map(_points, range(len(panels)))]}],
        "spacing": 14,
        "autosize": {"type": "fit-x", "contains": "padding"},
    }
    return specification, table(panels, smoothing)


def _points(number: int) -> str:
    """Return the name of the Vega-Lite view that receives the hover events of panel `number`."""
    return f"points_{number}"


def smoothed(values: Floats, weight: float) -> Floats:
    """Return the exponential moving average (n,) of values (n,), bias-corrected so that it does not start at 0.

    Args:
        values: Values (n,).
        weight: Weight of the past, in [0, 1); 0 returns the values unchanged.

    Reference:
        TensorBoard's line charts (`smooth`), with the bias correction of Kingma and Ba 2015, section 3.
    """
    from scipy.signal import lfilter  # slow to import

    if not weight or not len(values):
        return values
    averages: Floats = lfilter([1 - weight], [1, -weight], values)
    return averages / (1 - weight ** np.arange(1, len(values) + 1))


def table(panels: Sequence[CurvePanel], smoothing: float = 0.0) -> Columns:
    """Return one row per point to draw.

    The column `tick` is the index of the point's step interval, which all panels share.
    """
    curves = [(panel.title, curve) for panel in panels for curve in panel.curves if len(curve.steps)]
    width = interval(max((int(curve.steps[-1]) for _, curve in curves), default=1))
    parts = [thin(curve, width) | {"run": curve.run, "panel": title} for title, curve in curves]
    names = ["panel", "run", "tick", "step", "value", "low", "high"]
    if smoothing:
        names.append("raw")
        for part, (_, curve) in zip(parts, curves, strict=True):
            lines = thin(replace(curve, values=smoothed(curve.values, smoothing)), width)
            part |= {"raw": part["value"], "value": lines["value"]}
    if not parts:
        return {name: np.empty(0) for name in names}
    sizes = [len(part["step"]) for part in parts]
    # Repeat the names of panel and run for every point.
    filled = [[np.broadcast_to(part[name], size) for part, size in zip(parts, sizes, strict=True)] for name in names]
    return dict(zip(names, map(np.concatenate, filled), strict=True))


def interval(steps: int) -> int:
    """Return the interval width in steps: the smallest power of two that splits `steps` into at most MOST intervals.

    A power of two rarely changes as training proceeds, so that points already drawn keep their positions.
    """
    return 1 << max(0, -(-steps // MOST) - 1).bit_length()


def thin(curve: RunCurve, width: int) -> dict[str, Any]:
    """Return the mean, minimum and maximum of the curve in each interval of `width` steps.

    Each result is placed at the last recorded step of its interval. Step 0, before training, is a separate interval.
    """
    tick = -(-curve.steps // width)
    starts = np.flatnonzero(np.diff(tick, prepend=-1))
    ends = np.append(starts[1:], len(tick))
    return {
        "tick": tick[starts],
        "step": curve.steps[ends - 1],
        "value": np.add.reduceat(curve.values, starts) / (ends - starts),
        "low": np.minimum.reduceat(curve.values if curve.low is None else curve.low, starts),
        "high": np.maximum.reduceat(curve.values if curve.high is None else curve.high, starts),
    }


def _by_run(runs: Sequence[str]) -> tuple[Spec, Spec]:
    """Return the colour and dash encodings by run, with a common legend if there is more than one run."""
    legend = {
        "title": None,
        "orient": "top",
        "columns": {"expr": f"windowSize()[0] < {NARROW} ? 1 : 2"},
        "labelLimit": 420,
        "symbolType": "stroke",
        "symbolSize": 600,
        "symbolOpacity": 1,
        "symbolStrokeWidth": 3,
        "symbolFillColor": "transparent",
    }
    channel = {"field": "run", "type": "nominal", "legend": legend if len(runs) > 1 else None}
    colours, dashes = (
        {"domain": [*runs], "range": [looks[i % len(looks)] for i in range(len(runs))]} for looks in (COLOURS, DASHES)
    )
    return channel | {"scale": colours}, channel | {"scale": dashes}


def _layers(
    panel: CurvePanel, number: int, runs: Sequence[str], steps: int, forks: Sequence[int], last: bool, smooth: bool
) -> list[Spec]:
    """Return the layers of a panel, back to front; `smooth` is True if its lines are smoothed."""
    colour, dash = _by_run(runs)
    step = {"field": "step", "type": "quantitative"}
    x = step | {
        "title": "step" if last else None,
        "scale": {"domain": [0, max(1, steps)], "nice": False},
        "axis": {"labels": last, "ticks": last, "tickMinStep": 1, "format": ",d", "tickCount": X_TICKS},
    }
    scale = {"zero": False} if panel.bend is None else {"type": "symlog", "constant": panel.bend}
    ticks: Spec = {"values": [*panel.ticks]} if panel.ticks else {"tickCount": 5}
    axis = {"format": panel.unit, "minExtent": 48} | ticks
    shared = {"type": "quantitative", "title": panel.title, "scale": scale, "axis": axis}
    low, y, raw = ({"field": field} | shared for field in ("low", "value", "raw"))
    tooltip = [
        {"field": "run", "type": "nominal"},
        step | {"format": ",d"},
        {"field": "value", "type": "quantitative", "format": panel.unit}
        | {"title": f"{panel.title}, smoothed" if smooth else panel.title},
    ]
    if smooth:
        tooltip.append({"field": "raw", "type": "quantitative", "format": panel.unit, "title": panel.title})

    def own(mark: str, looks: Spec, **encoding: Any) -> Spec:
        """Return a layer that draws only the rows of this panel."""
        return {
            "mark": {"type": mark} | looks,
            "transform": [{"filter": {"field": "panel", "equal": panel.title}}],
            "encoding": {"x": x, "color": colour} | encoding,
        }

    seen = {"condition": [{"test": HOVERED, "value": 1}], "value": 0}
    return [
        own("area", {"opacity": 0.15}, y=low, y2={"field": "high"}),
        *([own("line", {"strokeWidth": 1, "opacity": 0.35, "aria": False}, y=raw)] if smooth else []),
        {  # drawn from the rows of all panels, so that the vertical line also appears where this panel has no point
            "mark": {"type": "rule", "color": INK[False]["quiet"], "aria": False},
            "transform": [{"filter": HOVERED}],
            "encoding": {"x": step | {"aggregate": "max"}},
        },
        own("line", {"strokeWidth": 2}, y=y, strokeDash=dash),
        own("point", {"filled": True, "size": 60}, y=y, opacity=seen, tooltip=tooltip) | {"name": _points(number)},
        *baselines.curve_level_layers(dict(panel.levels), y),
        *(_fork(at, x) for at in forks),
    ]


def _fork(step: int, x: Spec) -> Spec:
    """Return a vertical line at a step where a run was forked or a projection of chance-constrained training ended."""
    return {
        "data": {"values": [{"step": step}]},
        "mark": {"type": "rule", "strokeDash": [3, 3], "strokeWidth": 1.5, "aria": False},
        "encoding": {"x": x, "color": {"value": INK[False]["quiet"]}},
    }
