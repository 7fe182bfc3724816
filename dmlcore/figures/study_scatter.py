"""Scatter plot of two scores of a study, with one point per variant."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import altair as alt
import numpy as np

from dmlcore.figures.curves import COLOURS
from dmlcore.figures.vega_lite import ROWS, Columns, Spec, specification

LINE = 26  # characters per line of the x title, so that it fits three plots in a row


def scatter(
    points: Mapping[str, tuple[float, float]], *, title: str, measure: str, note: str = ""
) -> tuple[Spec, Columns]:
    """Return a scatter plot with one point per variant.

    Args:
        points: Variant -> (first score, second score). The second one, in 0..1, is drawn upwards as a percentage.
        title: Name of the first score.
        measure: Name of the second score.
        note: Text above the plot, such as the correlation.
    """
    columns: Columns = {
        "variant": np.array(list(points), dtype=object),
        "x": np.array([x for x, _ in points.values()]),
        "y": np.array([y for _, y in points.values()]),
    }
    scale = alt.Scale(zero=False, padding=12)
    chart = alt.Chart(ROWS, height=300, autosize=alt.AutoSizeParams(type="fit", contains="padding")).mark_point(
        filled=True, size=60, opacity=0.75, color=COLOURS[0]
    )
    chart = chart.encode(
        alt.X("x:Q", title=textwrap.wrap(title, LINE), scale=scale, axis=alt.Axis(tickCount=6, grid=True)),
        alt.Y("y:Q", title=measure, scale=scale, axis=alt.Axis(format=".3~%", tickCount=6)),
        tooltip=[
            alt.Tooltip("variant:N"),
            alt.Tooltip("x:Q", title=title, format=".3f"),
            alt.Tooltip("y:Q", title=measure, format=".1%"),
        ],
    )
    if note:
        chart = chart.properties(
            title=alt.TitleParams(note, anchor="start", fontSize=12, fontWeight="normal", limit=420)
        )
    return specification(chart), columns
