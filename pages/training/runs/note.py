"""Note on a run: shown on its card, edited in a popover."""

from __future__ import annotations

from html import escape

import streamlit as st

from dmlcore.inspection import notes, tags_and_views
from dmlcore.inspection.tags_and_views import NotKept
from dmlcore.storage.runs import Run


def show(run: Run) -> None:
    """Show the note on a run as plain text, if there is one."""
    try:
        if text := notes.read(run):
            st.html(f"<p style='margin:0;white-space:pre-wrap;overflow-wrap:anywhere'><bdi>{escape(text)}</bdi></p>")
    except NotKept as error:
        st.error(str(error), icon=":material/broken_image:")


def button(run: Run) -> None:
    """Show the button that opens the editor for the note on a run."""
    try:
        before, why = notes.read(run), tags_and_views.read_only_reason(run)
    except NotKept as error:
        before, why = "", str(error)
    key = f"note-{run.id}"
    base = _find_base_text(key, before)
    with st.popover(
        "Note",
        type="tertiary",
        icon=":material/edit_note:",
        key=f"{key}-open",
        disabled=bool(why),
        help=why or None,
    ):
        st.text_area("Note on this run", base, key=key, max_chars=notes.LONGEST, height=160)
        if base != before:
            st.warning("The note was changed elsewhere. The card shows the new version.")
            st.button("Overwrite note", key=f"{key}-over", on_click=_save, args=(run, before))
        else:
            st.button("Save note", key=f"{key}-keep", type="primary", on_click=_save, args=(run, base))


def _find_base_text(key: str, before: str) -> str:
    """Return the version of the note that the text in the editor was edited from.

    If the visitor has not edited the text, it is first replaced with `before`, the stored note.
    """
    base: str = st.session_state.setdefault(f"{key}-begun", before)
    typed = st.session_state.get(key)
    if base == before or typed not in (None, base):
        return base
    st.session_state[f"{key}-begun"] = before
    if typed is not None:
        st.session_state[key] = before
    return before


def _save(run: Run, before: str) -> None:
    key = f"note-{run.id}"
    try:
        st.session_state[f"{key}-begun"] = notes.keep(run, st.session_state[key], before=before)
    except NotKept as error:
        st.toast(str(error), icon=":material/error:")
