"""The class that the gallery is about, in ?class=."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import streamlit as st

from dmlcore.inspection.neighbours import Learned

ALL = -1  # no class


def choose(found: Learned, name: Callable[[int], str]) -> int | None:
    """A box with all classes; None for all of them.

    Not for a fragment: thousands of names would travel whenever a page is turned.
    """
    classes = np.unique(found.labels).tolist()
    wanted = st.query_params.get("class", "")
    label = int(wanted) if wanted.isascii() and wanted.isdigit() and len(wanted) < 10 else ALL
    st.session_state["class"] = label if label in classes else ALL  # the link is the truth, the box follows
    chosen: int = st.selectbox(
        "Class",
        [ALL, *classes],
        format_func=lambda c: "all classes" if c == ALL else name(c),
        key="class",
        help="Only queries of this class; neighbours come from all classes",
        width=220,
        on_change=_write,
    )
    return None if chosen == ALL else chosen


def _write() -> None:
    label = st.session_state["class"]
    if label == ALL:
        st.query_params.pop("class", None)
    else:
        st.query_params["class"] = str(label)
    st.query_params.pop("query", None)
