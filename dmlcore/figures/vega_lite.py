"""Helpers for Vega-Lite charts that are built with altair and drawn by the pages, which add rows and theme.

Rows are kept out of the specification, so that it does not change with them and the chart is redrawn without a flicker.
Channels are given as objects, such as alt.X2("to") instead of x2="to", because altair takes 2 ms to convert a string to
its channel class.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from dmlcore.figures.palette import INK
from dmlcore.typing import Array

Spec = dict[str, Any]
Columns = dict[str, Array]

ROWS = alt.NamedData("rows")  # placeholder for the data rows while a chart is built
NARROW = 700  # in pixels; in a narrower window, as on a phone, legends have one column
FIT = alt.AutoSizeParams(type="fit-x", contains="padding")


def specification(chart: alt.TopLevelMixin) -> Spec:
    """Return the Vega-Lite specification of a chart built on ROWS, without the rows and without altair's theme.

    Validation is skipped, because the components were validated when they were created and validating the whole chart
    would double the time.
    """
    return {
        key: part for key, part in chart.to_dict(validate=False).items() if key not in ("$schema", "config", "data")
    }


def ink(role: str) -> alt.ExprRef:
    """Return the colour of a role of the palette in the theme of the chart's background."""
    return alt.ExprRef(f"luminance(background) < 0.5 ? '{INK[True][role]}' : '{INK[False][role]}'")


def square_legend(title: str, colour: str, format: str) -> alt.Legend:
    """Return a legend of opacity below the chart: four squares of `colour`, with numbers in the d3 format `format`."""
    return alt.Legend(
        title=title,
        titleLimit=320,
        orient="bottom",
        direction="horizontal",
        format=format,
        symbolFillColor=colour,
        symbolStrokeWidth=0,
        symbolType="square",
        tickCount=4,
    )


def cycle(names: Sequence[str], looks: Sequence[Any]) -> alt.Scale:
    """Return a scale that gives each name one of the `looks`, such as colours, which repeat if there are too few."""
    return alt.Scale(domain=list(names), range=[looks[i % len(looks)] for i in range(len(names))])


def values(*rows: dict[str, Any]) -> alt.Data:
    """Return inline data for one layer, stored in the specification itself."""
    return alt.Data(values=list(rows))
