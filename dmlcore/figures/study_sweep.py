"""Line chart of the scores of a study against one setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from dmlcore.figures.curves import COLOURS, DASHES
from dmlcore.figures.vega_lite import FIT, NARROW, ROWS, Columns, Spec, cycle, specification

Lines = Mapping[str, Mapping[float, Sequence[float]]]  # line -> value of the setting -> scores of the seeds, in 0..1


def lines(swept: Lines, *, title: str, measure: str) -> tuple[Spec, Columns]:
    """Return a line chart of the mean scores, with ± one sample standard deviation over the seeds.

    The values of the setting are equally spaced in ascending order, because they may be 0 and differ by powers of ten.

    Args:
        swept: Scores of each line at each value of the setting.
        title: Name of the setting.
        measure: Name of the score.
    """
    rows = [
        (line, f"{value:g}", np.mean(scores), np.std(scores, ddof=1) if len(scores) > 1 else 0.0)
        for line, at in swept.items()
        for value, scores in at.items()
    ]
    order = [f"{value:g}" for value in sorted({value for at in swept.values() for value in at})]
    columns: Columns = {
        "line": np.array([row[0] for row in rows], dtype=object),
        "value": np.array([row[1] for row in rows], dtype=object),
        "mean": np.array([row[2] for row in rows]),
        "low": np.array([row[2] - row[3] for row in rows]),
        "high": np.array([row[2] + row[3] for row in rows]),
    }
    names = list(swept)
    wide = alt.ExprRef(f"windowSize()[0] < {NARROW} ? 1 : 4")
    legend = (
        None
        if len(names) == 1
        else alt.Legend(
            title=None, orient="top", symbolType="stroke", symbolSize=400, symbolStrokeWidth=3, columns=wide
        )
    )
    base = alt.Chart().encode(
        alt.X("value:O", sort=order, title=title, axis=alt.Axis(labelAngle=0), scale=alt.Scale(padding=0.3)),
        alt.Color("line:N", scale=cycle(names, COLOURS), legend=legend),
        tooltip=[alt.Tooltip("line:N"), alt.Tooltip("value:N", title=title), alt.Tooltip("mean:Q", format=".2%")],
    )
    axis = alt.Axis(format=".3~%", tickCount=6)
    y = alt.Y("mean:Q", title=measure, scale=alt.Scale(zero=False, padding=8), axis=axis)
    layers = [
        base.mark_rule(strokeWidth=1.5, opacity=0.6).encode(alt.Y("low:Q"), alt.Y2("high")),
        base.mark_line(strokeWidth=2.5, point={"size": 50, "filled": True}).encode(
            y, alt.StrokeDash("line:N", scale=cycle(names, DASHES), legend=legend)
        ),
    ]
    return specification(alt.layer(*layers, data=ROWS, height=280, autosize=FIT)), columns
