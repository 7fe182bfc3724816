"""Selection of samples shared by the Inspection pages: ?selection= in the URL names a file of the run.

The session remembers the last selection of each run, because the navigation drops the URL parameters.
"""

from __future__ import annotations

import numpy as np
import streamlit as st
from numpy.typing import ArrayLike

from dmlcore.inspection import metadata, selections
from dmlcore.inspection.selections import Selection
from dmlcore.storage.runs import Run
from pages.shared.widgets import export_menu, menu

PARAMETER = "selection"
_LAST = "last selections"  # session key of a dict: run id -> selection id


def chosen(run: Run) -> Selection | None:
    """Return the selection named in the URL, else the last one of this session, else None; update the URL.

    Shows a warning if the run has no selection of that name.
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
            "This run does not have the selection in the link. Showing all samples instead.", icon=":material/link_off:"
        )
    else:
        _last()[run.id] = rows.id
    return rows


def address(run: Run) -> dict[str, str]:
    """Return the URL parameters for links to other Inspection pages: the run, and the selection in the current URL."""
    kept = st.query_params.get(PARAMETER)
    return {"run": run.id} | ({PARAMETER: kept} if kept else {})


def _last() -> dict[str, str]:
    last: dict[str, str] = st.session_state.setdefault(_LAST, {})
    return last


def choose(run: Run, indices: ArrayLike, origin: str) -> None:
    """Save samples (indices in the data set) as the selection and write the selection's id into the URL.

    `origin` describes where the samples come from.
    """
    saved = selections.save(run, indices, origin)
    st.query_params[PARAMETER] = _last()[run.id] = saved.id


def button(
    run: Run,
    indices: ArrayLike,
    label: str,
    origin: str,
    *,
    key: str,
    help: str = "Shows these samples in Explore and Failures",
) -> None:
    """Show a button that replaces the selection with the given samples (indices in the data set).

    `origin` describes where the samples come from.
    """
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
    """Remove the selection from the URL and from the session."""
    name = st.query_params.get(PARAMETER)
    last = _last()
    for run in [run for run, kept in last.items() if kept == name]:
        del last[run]
    st.query_params.pop(PARAMETER, None)


def bar(run: Run, selection: Selection, *, here: str) -> None:
    """Show the selection, a button that removes it, a download, and links to the other pages that show it.

    `here` is the address of the current page, for example "explore".
    """
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
        indices = selection.indices
        export_menu.csv_button(
            run, "CSV", "selection", "csv-selection", lambda data: metadata.samples_csv(data, indices)
        )
        st.button("Clear selection", key="drop_selection", icon=":material/close:", on_click=forget)
