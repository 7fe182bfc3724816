"""Charts of published results: scores over a hyper-parameter with a noise band, and pairwise comparisons of losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import altair as alt

from dmlcore.figures.curves import COLOURS, DASHES
from dmlcore.figures.palette import INK
from dmlcore.figures.vega_lite import FIT, ROWS, Spec, cycle, specification
from dmlcore.figures.vega_lite import values as inline

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
OURS = INK[False]["ours"]
CROSS = "M-1,-1L1,1M1,-1L-1,1"
BEHIND, AHEAD, PALE, STRONG = (INK[False][role] for role in ("behind", "ahead", "onPrimary", "body"))

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Point:
    """A score in per cent at one value of the hyper-parameter.

    Attributes:
        series: Name of the series.
        x: Value of the hyper-parameter.
        score: The score in per cent.
        words: Source of the score, shown in the tooltip.
        low: Mean minus one standard deviation; only for our own results, otherwise None.
        high: Mean plus one standard deviation; only for our own results, otherwise None.
    """

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
) -> tuple[Spec, Rows]:
    """Return a chart of published scores over a hyper-parameter, with our own scores and the noise band.

    The band covers scores within `band` of the best published one. If x spans more than a factor of ten, its scale is
    linear around 0 and logarithmic outside.

    Args:
        printed: The published points.
        ours: Points of our own runs, drawn on top.
        x_title: Title of the x axis.
        y_title: Title of the y axis.
        band: Width of the band below the best printed score, in percentage points; 0 for none.
    """
    names = list(dict.fromkeys(point.series for point in printed))
    values = sorted({point.x for point in (*printed, *ours)})
    # Use the logarithmic scale if the largest value is more than ten times the smallest one that is not 0.
    wide = max(map(abs, values)) > 2 * min((abs(v) for v in values if v), default=1.0) * 5
    best = max(point.score for point in printed)
    symlog = alt.Scale(type="symlog", constant=0.05, nice=False, padding=16)
    x = alt.X(
        "x:Q",
        title=x_title,
        scale=symlog if wide else alt.Scale(zero=False, padding=16),
        axis=alt.Axis(values=values, labelOverlap="greedy", grid=False, format=".4~g"),
    )
    y = alt.Y("score:Q", title=y_title, scale=alt.Scale(zero=False, padding=10))
    tooltip = [
        alt.Tooltip("series:N"),
        alt.Tooltip("x:Q", title=x_title),
        alt.Tooltip("score:Q", format=".2f", title=y_title),
        alt.Tooltip("words:N", title="where"),
    ]
    # Series differ in colour, shape and dash, so that they are distinguishable without colour.
    legend = alt.Legend(title=None, orient="bottom", columns=5, labelLimit=320, symbolStrokeWidth=0)
    shown = legend if len(names) > 1 else None
    colour = alt.Color("series:N", scale=cycle(names, COLOURS), legend=shown)
    shape = alt.Shape("series:N", scale=cycle(names, SHAPES), legend=shown)
    dash = alt.StrokeDash("series:N", scale=cycle(names, DASHES), legend=None)
    lines = alt.Chart().transform_filter(~alt.datum.ours).encode(x, y, colour)
    layers = [
        lines.mark_line(strokeWidth=2).encode(dash),
        lines.mark_point(filled=True, size=75, opacity=1).encode(shape, tooltip=tooltip),
    ]
    # The band is drawn below the lines, our points above them.
    if band:
        words = f"within {band:g} of the best: equal within the noise"
        best_band = alt.Chart(inline({"low": best - band, "high": best, "words": words}))
        best_band = best_band.mark_rect(opacity=0.16, color=INK[False]["quiet"])
        layers.insert(0, best_band.encode(alt.Y("low:Q"), alt.Y2("high"), alt.Tooltip("words:N")))
    if ours:
        mine = alt.Chart().transform_filter(alt.datum.ours).encode(x)
        spread = mine.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2, color=OURS)
        crosses = mine.mark_point(shape=CROSS, size=60, strokeWidth=2.5, color=OURS, filled=False)
        layers += [spread.encode(alt.Y("low:Q"), alt.Y2("high")), crosses.encode(y, tooltip=tooltip)]
    rows = [asdict(point) | {"ours": own} for points, own in ((printed, False), (ours, True)) for point in points]
    return specification(alt.layer(*layers, data=ROWS, height=380, autosize=FIT)), rows


def duels(names: Sequence[str], outcomes: Sequence[Sequence[tuple[int, int, int]]]) -> tuple[Spec, Rows]:
    """Return a matrix chart with the wins, ties and defeats of each row's loss against each column's loss.

    Cells are blue where the row's loss has more wins than defeats, and vermilion where it has fewer.
    """
    rows = [
        {
            "one": one,
            "other": other,
            "share": (wins - defeats) / max(1, wins + ties + defeats),
            "wins": wins,
            "ties": ties,
            "defeats": defeats,
            "text": "" if one == other else f"{wins}" if not ties else f"{wins}+{ties}",
        }
        for one, line in zip(names, outcomes, strict=True)
        for other, (wins, ties, defeats) in zip(names, line, strict=True)
    ]
    axis = alt.Axis(title=None, labelLimit=150, domain=False, ticks=False)
    top = axis.copy()
    top.orient, top.labelAngle, top.labelOverlap = "top", -40, False
    scale = alt.Scale(domain=[-1, 0, 1], range=[BEHIND, INK[False]["soft"], AHEAD], interpolate="rgb")
    tooltip = [
        alt.Tooltip("one:N", title="row"),
        alt.Tooltip("other:N", title="against"),
        *(alt.Tooltip(f"{name}:Q") for name in ("wins", "ties", "defeats")),
    ]
    base = alt.Chart().encode(tooltip=tooltip)
    # The diagonal has no cells. Numbers are white on dark cells.
    cells = base.transform_filter(alt.datum.one != alt.datum.other).mark_rect(cornerRadius=3)
    ink = (
        alt.when(alt.datum.share > 0.9)
        .then(alt.value(INK[False]["onPrimary"]))
        .otherwise(alt.value(INK[False]["body"]))
    )
    chart = alt.layer(
        cells.encode(alt.Color("share:Q", scale=scale, legend=None)),
        base.mark_text(fontSize=12).encode(alt.Text("text:N"), color=ink),
        data=ROWS,
        height=alt.Step(30),
        autosize=FIT,
    )
    chart = chart.encode(alt.X("other:N", sort=list(names), axis=top), alt.Y("one:N", sort=list(names), axis=axis))
    return specification(chart), rows
