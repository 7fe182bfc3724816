"""Charts that altair writes, as the pages draw them: their rows come beside the specification, their theme from there.

Rows stay apart so that a specification is the same while only rows change, which is redrawn without a flicker. Channels
are named in full, alt.X2("to") for x2="to": altair takes 2 ms to turn a text into its class.
"""

from __future__ import annotations

from typing import Any

import altair as alt

from dmlcore.typing import Array

Spec = dict[str, Any]
Columns = dict[str, Array]

ROWS = alt.NamedData("rows")  # stands for the rows while a chart is built
NARROW = 700  # pixels of a window, below which a legend has one column: a phone
FIT = alt.AutoSizeParams(type="fit-x", contains="padding")


def specification(chart: alt.TopLevelMixin) -> Spec:
    """Vega-Lite of a chart of ROWS, without them and without altair's theme.

    Its parts were checked when they were built; checking the whole once more would take as long again as building it.
    """
    return {
        key: part for key, part in chart.to_dict(validate=False).items() if key not in ("$schema", "config", "data")
    }


def square_legend(title: str, colour: str, format: str) -> alt.Legend:
    """Of an opacity, below the chart: four squares of a colour; format: d3's, of their numbers."""
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


def values(*rows: dict[str, Any]) -> alt.Data:
    """Rows of one layer that are part of the chart."""
    return alt.Data(values=list(rows))
