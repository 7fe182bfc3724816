"""Table of all data sets, from which one is selected."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pyarrow as pa
import streamlit as st

from dmlcore import data
from dmlcore.data import DataError, report
from dmlcore.data.published_counts import PUBLISHED
from dmlcore.data.readers.cifar import IMAGES
from pages.shared.state.cache import cached
from pages.shared.words.titles import data_choice, data_choices

FIRST = "glyphs"
ROWS = 424  # height of the table in pixels
COMES_ALONG = {  # (samples, classes) of the built-in data sets
    "digits": (1_797, 10),
    "digits_pictures": (1_797, 10),
    "toy": (6_400, 32),
    "moons": (1_600, 8),
    "rings": (1_600, 8),
    "tokens": (36_864, 16),
    "tokens_few": (9_216, 4),
    "birds": (2_880, 72),
    "glyphs": (6_240, 312),
}
# number of samples in complete data sets without published split sizes
COMPLETE = {"cifar10": IMAGES, "cifar100": IMAGES}


def choose(first: str) -> str:
    """Show a select box and the table of data sets; return the name of the selected data set.

    The initial selection comes from the URL parameter `data`; if it is missing or invalid, `first` is selected.
    """
    known = data_choices()
    asked = st.query_params.get("data")
    if asked in known and (asked != st.session_state.get("data-shown") or "data-set" not in st.session_state):
        st.session_state["data-set"] = asked
    st.session_state.setdefault("data-set", first if first in known else FIRST)
    name = st.selectbox("Data set", known, format_func=data_choice, key="data-set")
    _overview(known)
    st.session_state["data-shown"] = name
    st.query_params["data"] = name
    return str(name)


def _overview(known: Sequence[str]) -> None:
    counts = report.counts_folder()
    st.dataframe(
        _table(os.environ.get("DML_DATA"), str(counts), counts.stat().st_mtime_ns if counts.is_dir() else 0),
        key="data-table",
        placeholder="–",
        height=ROWS,
        hide_index=True,
        on_select=lambda: _chosen_in_table(known),
        selection_mode="single-row",
        column_config={
            "data set": st.column_config.TextColumn(width=172),
            "here": st.column_config.TextColumn(width=66),
            "samples": st.column_config.NumberColumn(format="localized", width=68),
            "classes": st.column_config.NumberColumn(format="localized", width=64),
        },
    )
    st.caption("“–” means that the data set is not loaded yet.")


@cached(most=4, lifetime=2.0)
def _table(where: str | None, counts: str, counted_at: int) -> pa.Table:
    """Return the table of all data sets.

    Cached for all visitors, because it searches six folders for twenty data sets. The arguments serve only as the cache
    key: the value of $DML_DATA, the folder with stored sample counts, and the modification time of that folder in ns.
    """
    known = data_choices()
    here, samples, classes, places = [], [], [], []
    for name in known:
        try:
            place = data.available(name)
        except (DataError, OSError):
            place = None
        counted = report.read_summary(name, place) if place else None
        here.append("absent" if place is None else _state(name, counted))
        held = (counted.samples, counted.classes) if counted else COMES_ALONG.get(name, (None, None))
        samples.append(held[0])
        classes.append(held[1])
        places.append("" if place is None else str(place) if data.describe(name).needs_files else "built in")
    titles = [data_choice(name).partition(" (")[0] for name in known]  # the column is too narrow for remarks
    return pa.table({"data set": titles, "here": here, "samples": samples, "classes": classes, "where": places})


def _state(name: str, counted: report.DataSummary | None) -> str:
    complete = sum(size.samples for size in PUBLISHED.get(name, {}).values()) or COMPLETE.get(name)
    if counted and counted.damaged:
        return "incomplete"
    return "a subset" if counted and complete and counted.samples < complete else "present"


def _chosen_in_table(known: Sequence[str]) -> None:
    if rows := st.session_state["data-table"].selection.rows:
        st.session_state["data-set"] = known[rows[0]]
