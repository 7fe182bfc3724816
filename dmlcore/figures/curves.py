"""Training curves of several runs over the same steps, with one hover for all panels.

The hover is a parameter of the whole that names its views, as altair has numbered them: of one added to every panel
altair 6.3 makes one too, but warns and lists a view that does not exist.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import altair as alt
import numpy as np

from dmlcore.figures import baselines
from dmlcore.figures.vega_lite import FIT, NARROW, ROWS, Columns, Spec, specification, values
from dmlcore.typing import Floats, Ints

MOST = 300  # points of a curve at most: about one per three pixels
# Okabe-Ito, in an order that stays apart under colour blindness; each run has its own dashes as well.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#8C6BB1", "#7F7F7F")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [4, 4], [10, 3], [3, 1], [6, 2, 1, 2])
POINTER = alt.PointSelectionConfig(type="point", fields=["tick"], nearest=True, on="pointerover", clear="pointerout")
HOVERED = alt.ParameterPredicate(param="hover", empty=False)


@dataclass(frozen=True)
class RunCurve:
    """One quantity of one run, named as in the legend: steps (n,) ascending from 0 or 1, values (n,) finite.

    low, high: the band (n,) around the values, of which a single run has none.
    """

    run: str
    steps: Ints
    values: Floats
    low: Floats | None = None
    high: Floats | None = None


@dataclass(frozen=True)
class CurvePanel:
    """One of the stacked charts; unit: d3 number format of axis and tooltip; height in pixels; levels: baselines.

    bend: where a scale that shows small values beside large ones turns from linear to logarithmic; None: linear.
    ticks: of such a scale, whose own would be those of a linear one.
    """

    title: str
    curves: Sequence[RunCurve]
    unit: str = ".3~g"
    height: int = 190
    levels: tuple[tuple[str, float], ...] = ()
    bend: float | None = None
    ticks: tuple[float, ...] = ()


def averaged(name: str, curves: Sequence[RunCurve]) -> RunCurve:
    """The mean over several runs at each step, of those that have a value there, in a band from lowest to highest."""
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
    """Vega-Lite specification and rows of the panels, one above the other, over the steps 0..`steps`.

    Lines are means over `interval` steps, the band behind them is the range of the values there. forks: steps of lines
    across each panel, after which runs part or a projection has ended. smoothing: weight of the past in `smoothed`, in
    0..1, 1 excluded; the lines are then those, and faint ones show what is smoothed.
    """
    runs = dict.fromkeys(curve.run for panel in panels for curve in panel.curves)
    frames = tuple(replace(panel, curves=()) for panel in panels)
    drawn = _specification(frames, tuple(runs), steps, tuple(forks), smoothing > 0)
    return copy.deepcopy(drawn), table(panels, smoothing)


@lru_cache(maxsize=64)
def _specification(
    panels: tuple[CurvePanel, ...], runs: tuple[str, ...], steps: int, forks: tuple[int, ...], smooth: bool
) -> Spec:
    """Kept, because a run that goes on draws it every second and altair takes some 20 ms for a panel."""
    by_run = _by_run(runs)
    charts = [_panel(panel, *by_run, steps, forks, last=panel is panels[-1], smooth=smooth) for panel in panels]
    whole = alt.vconcat(*charts, data=ROWS, spacing=14, autosize=FIT)
    views = [layer.name for chart in whole.vconcat for layer in chart.layer if layer.name is not alt.Undefined]
    whole.params = [alt.TopLevelSelectionParameter(name="hover", select=POINTER, views=views)]
    return specification(whole)


def smoothed(values: Floats, weight: float) -> Floats:
    """Exponential moving average (n,) of values (n,), debiased, so that it does not begin at 0.

    weight: of the past, in 0..1, 1 excluded; 0 leaves the values as they are.

    Source: TensorBoard's line charts (`smooth`), after the bias correction of Kingma and Ba 2015, section 3.
    """
    from scipy.signal import lfilter  # slow to import

    if not weight or not len(values):
        return values
    averages: Floats = lfilter([1 - weight], [1, -weight], values)
    return averages / (1 - weight ** np.arange(1, len(values) + 1))


def table(panels: Sequence[CurvePanel], smoothing: float = 0.0) -> Columns:
    """One row per drawn point; `tick` numbers the intervals of steps, which all panels and runs share."""
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
    # A label becomes as many copies of itself as there are points.
    filled = [[np.broadcast_to(part[name], size) for part, size in zip(parts, sizes, strict=True)] for name in names]
    return dict(zip(names, map(np.concatenate, filled), strict=True))


def interval(steps: int) -> int:
    """The smallest power of two that cuts `steps` into at most MOST intervals: it grows seldom, so points stay put."""
    return 1 << max(0, -(-steps // MOST) - 1).bit_length()


def thin(curve: RunCurve, width: int) -> dict[str, Any]:
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
        "low": np.minimum.reduceat(curve.values if curve.low is None else curve.low, starts),
        "high": np.maximum.reduceat(curve.values if curve.high is None else curve.high, starts),
    }


def _by_run(runs: Sequence[str]) -> tuple[alt.Color, alt.StrokeDash]:
    """Colour and dashes by run in one legend; none for a single run."""
    legend = alt.Legend(
        title=None,
        orient="top",
        columns=alt.ExprRef(f"windowSize()[0] < {NARROW} ? 1 : 2"),
        labelLimit=420,
        symbolType="stroke",
        symbolSize=600,
        symbolOpacity=1,
        symbolStrokeWidth=3,
        symbolFillColor="transparent",
    )
    shown = legend if len(runs) > 1 else None
    colours = alt.Scale(domain=runs, range=[COLOURS[i % len(COLOURS)] for i in range(len(runs))])
    dashes = alt.Scale(domain=runs, range=[DASHES[i % len(DASHES)] for i in range(len(runs))])
    return alt.Color("run:N", scale=colours, legend=shown), alt.StrokeDash("run:N", scale=dashes, legend=shown)


def _panel(
    panel: CurvePanel,
    colour: alt.Color,
    dash: alt.StrokeDash,
    steps: int,
    forks: Sequence[int],
    *,
    last: bool,
    smooth: bool,
) -> alt.LayerChart | alt.FacetChart:
    x = alt.X(
        "step:Q",
        title="step" if last else None,
        scale=alt.Scale(domain=[0, max(1, steps)], nice=False),
        axis=alt.Axis(labels=last, ticks=last, tickMinStep=1, format=",d"),
    )
    scale = alt.Scale(zero=False) if panel.bend is None else alt.Scale(type="symlog", constant=panel.bend)
    axis = alt.Axis(format=panel.unit, tickCount=5, minExtent=48)
    if panel.ticks:
        axis = alt.Axis(format=panel.unit, values=list(panel.ticks), minExtent=48)
    low, y, raw = (alt.Y(f"{field}:Q", title=panel.title, scale=scale, axis=axis) for field in ("low", "value", "raw"))
    tooltip = [
        alt.Tooltip("run:N"),
        alt.Tooltip("step:Q", format=",d"),
        alt.Tooltip("value:Q", title=f"{panel.title}, smoothed" if smooth else panel.title, format=panel.unit),
        *([alt.Tooltip("raw:Q", title=panel.title, format=panel.unit)] if smooth else []),
    ]
    own = alt.Chart().transform_filter(alt.FieldEqualPredicate(field="panel", equal=panel.title)).encode(x, colour)
    # Filtered from the rows of all panels, so that the rule also stands where this one has no point.
    rule = alt.Chart().mark_rule(color="#888888", aria=False).transform_filter(HOVERED).encode(alt.X("max(step):Q"))
    points = own.mark_point(filled=True, size=60).properties(name="points")
    seen = alt.when(HOVERED).then(alt.value(1)).otherwise(alt.value(0))
    return alt.layer(
        own.mark_area(opacity=0.15).encode(low, alt.Y2("high")),
        *([own.mark_line(strokeWidth=1, opacity=0.35, aria=False).encode(raw)] if smooth else []),
        rule,
        own.mark_line(strokeWidth=2).encode(y, dash),
        points.encode(y, opacity=seen, tooltip=tooltip),
        *baselines.across(dict(panel.levels), y),
        *(_fork(step, x) for step in forks),
        height=panel.height,
    )


def _fork(step: int, x: alt.X) -> alt.Chart:
    """The line after which runs part, or another projection begins."""
    line = alt.Chart(values({"step": step})).mark_rule(strokeDash=[3, 3], strokeWidth=1.5, aria=False)
    drawn: alt.Chart = line.encode(x, color=alt.value("#7F7F7F"))
    return drawn
