"""Bar chart of the importance of each setting."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import numpy as np

from dmlcore.figures.curves import COLOURS
from dmlcore.figures.vega_lite import FIT, ROWS, Columns, Spec, specification


def bars(shares: Mapping[str, float]) -> tuple[Spec, Columns]:
    """Return the specification and rows of a bar chart with one bar per setting, in the order of `shares`.

    Args:
        shares: Share of the differences in score that each setting explains, in 0..1.
    """
    base = alt.Chart().encode(
        alt.Y("setting:N", sort=None, title=None, axis=alt.Axis(labelLimit=320)),
        alt.X(
            "share:Q",
            title="share of the differences in score",
            axis=alt.Axis(format="%", tickCount=5),
            # leaves room for the numbers to the right of the bars
            scale=alt.Scale(domain=[0, 1.2 * max(shares.values(), default=1.0)], nice=False),
        ),
    )
    written = alt.Text("share:Q", format=".0%")
    layers = base.mark_bar(color=COLOURS[0]), base.mark_text(align="left", dx=4, color=COLOURS[7]).encode(written)
    whole = alt.layer(*layers, data=ROWS, height=26 * max(1, len(shares)), autosize=FIT)
    return specification(whole), {"setting": np.array(list(shares)), "share": np.array(list(shares.values()))}
