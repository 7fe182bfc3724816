"""Published results: all printed tables, searchable, with our runs, noise levels, margins and a tournament."""

from __future__ import annotations

import streamlit as st

from dmlcore.published.collection import collection
from pages.library.published_results import margins as margins_view
from pages.library.published_results import tables as tables_view
from pages.library.published_results import tournament as tournament_view
from pages.shared.words import glossary

VIEWS = {
    "Tables": tables_view,
    "Margins": margins_view,
    "Tournament": tournament_view,
}

with st.container(horizontal=True, vertical_alignment="center"):
    st.title("Published results", anchor=False, width="content")
    chosen = st.segmented_control(
        "View",
        list(VIEWS),
        default="Tables",
        required=True,
        key="view",
        bind="query-params",
        label_visibility="collapsed",
    )
tables = collection()
st.markdown(
    f"{len(tables)} tables with {sum(len(table.rows) for table in tables):,} rows from four theses and one article, "
    "with our results under the same protocol. Where the noise is known, best rows without a significant "
    "difference are all marked.",
    help=glossary.explain("significant difference", "baseline", "R@K", "MAP@R"),
)
view = VIEWS[chosen or "Tables"]
for other in VIEWS.values():
    if other is not view:
        st.query_params.pop(other.PARAMETER, None)
view.show()
