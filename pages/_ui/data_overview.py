"""The table of all data sets, and which of them is chosen."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dmlcore import data
from dmlcore.data import DataError, report
from dmlcore.data.cifar import PICTURES
from dmlcore.data.official import PUBLISHED

FIRST = "birds"
ROWS = 318  # pixels of the table of all
COMPLETE = {"cifar10": PICTURES, "cifar100": PICTURES}  # samples, where no part is published


def choose() -> str:
    """The data set of ?data=, of the table or of the box."""
    known = data.names()
    asked = st.query_params.get("data")
    if asked in known and asked != st.session_state.get("data-shown"):
        st.session_state["data-set"] = asked
    st.session_state.setdefault("data-set", FIRST)
    _overview(known)
    name = st.selectbox(
        "Data set", known, format_func=lambda name: data.describe(name).title, key="data-set", width=420
    )
    st.session_state["data-shown"] = name
    st.query_params["data"] = name
    return str(name)


def _overview(known: Sequence[str]) -> None:
    here, samples, classes, places = [], [], [], []
    for name in known:
        try:
            place = data.available(name)
        except (DataError, OSError):
            place = None
        counted = report.remembered(name, place) if place else None
        here.append("absent" if place is None else _state(name, counted))
        samples.append(counted.samples if counted else None)
        classes.append(counted.classes if counted else None)
        places.append("" if place is None else str(place) if data.describe(name).needs_files else "comes with the lab")
    st.dataframe(
        {
            "data set": [data.describe(name).title for name in known],
            "here": here,
            "samples": samples,
            "classes": classes,
            "where": places,
        },
        key="data-table",
        placeholder="not read yet",
        height=ROWS,
        hide_index=True,
        on_select=lambda: _chosen_in_table(known),
        selection_mode="single-row",
        column_config={
            "samples": st.column_config.NumberColumn(format="localized", width="small"),
            "classes": st.column_config.NumberColumn(format="localized", width="small"),
            "here": st.column_config.TextColumn(width="small"),
        },
    )
    st.caption("Samples and classes are those of the last reading; a data set is read when it is first chosen.")


def _state(name: str, counted: report.Summary | None) -> str:
    complete = sum(size.samples for size in PUBLISHED.get(name, {}).values()) or COMPLETE.get(name)
    if counted and counted.damaged:
        return "incomplete"
    return "a subset" if counted and complete and counted.samples < complete else "present"


def _chosen_in_table(known: Sequence[str]) -> None:
    if rows := st.session_state["data-table"].selection.rows:
        st.session_state["data-set"] = known[rows[0]]
