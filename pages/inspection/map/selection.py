"""What is selected on the map, as a bar and a table of classes."""

from __future__ import annotations

import numpy as np
import streamlit as st

from dmlcore.inspection.selections import Selection
from pages.inspection.map import service as map_service
from pages.inspection.map.service import MapData
from pages.shared.widgets import selection

MOST_ROWS = 1000


def show(data: MapData, chosen: Selection | None) -> None:
    """The bar of the selection with its class counts; how to make one where there is none."""
    if chosen is None:
        st.caption(
            "Select samples: choose Lasso above the map and draw around them (or hold Shift and drag). The selection "
            "carries over to the gallery."
        )
        return
    selection.bar(data.run, chosen, here="maps")
    rows = np.flatnonzero(np.isin(data.sheet.indices, chosen.indices))
    if not len(rows):
        st.caption("None of the selected samples is on this map.")
        return
    number, counts = np.unique(data.sheet.group[rows], return_counts=True)
    order = np.argsort(-counts, kind="stable")[:MOST_ROWS]
    names = map_service.names(data.run, data.sheet)
    st.dataframe(
        {
            "class": [names[k] for k in number[order]],
            "selected": counts[order],
            "of": data.sheet.counts[number[order]],
            "share of the class": counts[order] / data.sheet.counts[number[order]],
        },
        column_config={
            "class": st.column_config.TextColumn(width="medium"),
            "share of the class": st.column_config.ProgressColumn(format="percent", min_value=0, max_value=1),
        },
        hide_index=True,
        height="content" if len(order) <= 10 else 390,
        width=620,
        key="selected classes",
    )
    if len(number) > MOST_ROWS:
        st.caption(f"The {MOST_ROWS:,} classes with most selected samples, of {len(number):,}.")
