"""Chart of a counter-example over one variable, to compare a printed claim with its correction.

It shows a curve for the printed claim, a curve for the corrected claim, and values from an independent computation,
called the referee.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import altair as alt
import numpy as np

from dmlcore.figures.palette import INK
from dmlcore.figures.vega_lite import FIT, ROWS, Spec, specification
from dmlcore.typing import Floats

PRINTED, TRUE = "printed", "true"
# colours of the printed curve, the corrected curve and the referee's values; the key is True for the dark theme
COLOURS = {dark: tuple(ink[name] for name in ("printedText", "correctedText", "referee")) for dark, ink in INK.items()}


class BothSides(Protocol):
    """Curves of a printed and a corrected claim at `x` (n,), and values of an independent referee at `dots` (m,).

    NaN marks missing values.
    """

    @property
    def x(self) -> Floats: ...
    @property
    def printed(self) -> Floats: ...
    @property
    def true(self) -> Floats: ...
    @property
    def dots(self) -> Floats: ...
    @property
    def referee(self) -> Floats: ...


def two_sides(
    sides: BothSides,
    at: float,
    *,
    axis: str,
    quantity: str,
    by: str,
    whole: bool = False,
    dark: bool = False,
) -> tuple[Spec, list[dict[str, Any]]]:
    """Return a chart of the printed (dashed) and the corrected (solid) curve, with the referee's values as rings.

    The referee is an independent computation of the same quantity.

    Args:
        sides: The curves and the referee's values.
        at: Selected value on the x axis, marked by a vertical line.
        axis: Title of the x axis.
        quantity: Title of the chart.
        by: Name of the referee in the legend.
        whole: True if only integers are valid on the x axis.
        dark: Use the colours of the dark theme.

    Returns:
        Vega-Lite specification and its data rows.
    """
    ticks = alt.Axis(grid=False, tickMinStep=1, format="d") if whole else alt.Axis(grid=False)
    x = alt.X("x:Q", title=axis, scale=alt.Scale(nice=False, zero=False, padding=4), axis=ticks)
    y = alt.Y("y:Q", title=None, scale=alt.Scale(zero=False))
    names, ranges = [PRINTED, TRUE, by], list(COLOURS[dark])
    if not np.isfinite(sides.printed).any():  # omit the printed curve from the legend if it has no values
        names, ranges = names[1:], ranges[1:]
    legend = alt.Legend(title=None, orient="top", labelLimit=320, symbolStrokeWidth=3)
    colour = alt.Color("side:N", scale=alt.Scale(domain=names, range=ranges), legend=legend)
    dashes = alt.Scale(domain=[PRINTED, TRUE, by], range=[[6, 4], [1, 0], [1, 0]])
    dash = alt.StrokeDash("side:N", scale=dashes, legend=None)
    tooltip = [alt.Tooltip("side:N"), alt.Tooltip("x:Q", title=axis, format=".4~g"), alt.Tooltip("y:Q", format=".6~g")]
    base = alt.Chart().encode(x)
    across = base.transform_filter("!isValid(datum.y)").mark_rule(strokeWidth=1, color=COLOURS[dark][2], opacity=0.6)
    line = base.transform_filter("isValid(datum.y) && !datum.dot").mark_line(strokeWidth=2.5, clip=True)
    ring = base.transform_filter("datum.dot").mark_point(size=60, strokeWidth=1.8, filled=False, opacity=1)
    rows = [{"x": float(at), "y": None, "side": "", "dot": False}]
    for name, places, heights in (
        (PRINTED, sides.x, sides.printed),
        (TRUE, sides.x, sides.true),
        (by, sides.dots, sides.referee),
    ):
        rows += [
            {"x": float(place), "y": float(level), "side": name, "dot": name == by}
            for place, level in zip(places, heights, strict=True)
            if math.isfinite(level)
        ]
    layers = [across, line.encode(y, colour, dash), ring.encode(y, colour, tooltip=tooltip)]
    return specification(alt.layer(*layers, data=ROWS, height=240, title=quantity, autosize=FIT)), rows
