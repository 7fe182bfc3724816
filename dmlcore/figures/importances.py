"""Bar chart of the importance of settings, longest bar first."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import numpy as np

from dmlcore.figures.curves import COLOURS
from dmlcore.figures.vega_lite import FIT, ROWS, Columns, Spec, specification


def bars(shares: Mapping[str, float]) -> tuple[Spec, Columns]:
    """Return the Vega-Lite specification and rows of shares in 0..1 by setting, in the given order."""
    base = alt.Chart().encode(
        alt.Y("setting:N", sort=None, title=None, axis=alt.Axis(labelLimit=320)),
        alt.X(
            "share:Q",
            title="share of the differences in score",
            axis=alt.Axis(format="%", tickCount=5),
            # leaves room for the numbers
            scale=alt.Scale(domain=[0, 1.2 * max(shares.values(), default=1.0)], nice=False),
        ),
    )
    written = alt.Text("share:Q", format=".0%")
    layers = base.mark_bar(color=COLOURS[0]), base.mark_text(align="left", dx=4, color=COLOURS[7]).encode(written)
    whole = alt.layer(*layers, data=ROWS, height=26 * max(1, len(shares)), autosize=FIT)
    return specification(whole), {"setting": np.array(list(shares)), "share": np.array(list(shares.values()))}
