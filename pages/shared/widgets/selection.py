"""The selection of samples that the pages of Inspection share: ?selection= in the link, a file in the run.

A session remembers the last one of each run, as the navigation drops what stands in the address.
"""

from __future__ import annotations

import numpy as np
import streamlit as st
from numpy.typing import ArrayLike

from dmlcore.inspection import selections
from dmlcore.inspection.selections import Selection
from dmlcore.storage.runs import Run
from pages.shared.widgets import menu

PARAMETER = "selection"
_LAST = "last selections"  # of this session: run id -> selection id


def chosen(run: Run) -> Selection | None:
    """The selection of the link, else the last one of this session, or None; the link names it afterwards.

    Says so if the link names one that this run does not have.
    """
    name = st.query_params.get(PARAMETER)
    if name is None:
        rows = selections.load(run, _last().get(run.id, ""))
        if rows is not None:
            st.query_params[PARAMETER] = rows.id
        return rows
    rows = selections.load(run, name)
    if rows is None:
        st.warning(
            "The selection of the link is not kept with this run; all samples are shown.", icon=":material/link_off:"
        )
    else:
        _last()[run.id] = rows.id
    return rows


def address(run: Run) -> dict[str, str]:
    """What a link to another page of Inspection carries: the run, and the selection that this one's address names."""
    kept = st.query_params.get(PARAMETER)
    return {"run": run.id} | ({PARAMETER: kept} if kept else {})


def _last() -> dict[str, str]:
    last: dict[str, str] = st.session_state.setdefault(_LAST, {})
    return last


def choose(run: Run, indices: ArrayLike, origin: str) -> None:
    """Keep samples (indices in the data set) as the selection, and put it into the link."""
    saved = selections.save(run, indices, origin)
    st.query_params[PARAMETER] = _last()[run.id] = saved.id


def button(
    run: Run,
    indices: ArrayLike,
    label: str,
    origin: str,
    *,
    key: str,
    help: str = "Explore and Failures then show them",
) -> None:
    """A button that makes samples (indices in the data set) the selection."""
    st.button(
        label,
        key=key,
        icon=":material/select_all:",
        disabled=not np.size(indices),
        help=help,
        on_click=choose,
        args=(run, indices, origin),
    )


def forget() -> None:
    """Drop the selection: from the link, and from what the session remembers."""
    name = st.query_params.get(PARAMETER)
    last = _last()
    for run in [run for run, kept in last.items() if kept == name]:
        del last[run]
    st.query_params.pop(PARAMETER, None)


def bar(run: Run, selection: Selection, *, here: str) -> None:
    """What is selected, a way to drop it, and the other pages that show it. here: the page itself, as "explore"."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge(f"{len(selection.indices):,} samples selected", icon=":material/select_all:")
        st.text(selection.origin)
        for page, label in (
            ("explore", "Map and images"),
            ("neighbours", None),
            ("failures", "Forces of its failures"),
        ):
            if page != here:
                menu.link(page, label, {"run": run.id, PARAMETER: selection.id})
        st.button("Drop the selection", key="drop_selection", icon=":material/close:", on_click=forget)
