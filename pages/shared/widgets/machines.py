"""Where what a visitor starts is done: this machine, or a cluster that its owner names in $DML_BACKENDS."""

from __future__ import annotations

import os

import streamlit as st

_KEY = "machine"
_HERE = {"": "This machine"}
HELP = "What you start from here on: training runs, studies, evaluations, maps. What is under way stays where it is."


def sidebar() -> None:
    """The choice, where there is one; drawn by the router, so that it holds on every page."""
    offered, wrong = _offered()
    if wrong:
        st.sidebar.warning(f"DML_BACKENDS: {wrong}")
    elif len(offered) > 1:
        st.sidebar.selectbox("Runs on", list(offered), key=_KEY, format_func=lambda text: offered[text], help=HELP)


def chosen() -> str:
    """What was chosen, as `launch` takes it; "": this machine."""
    named: str = st.session_state.get(_KEY, "")
    return named if named in _offered()[0] else ""


def chosen_title() -> str:
    """What was chosen, in words."""
    return _offered()[0][chosen()]


def any_other() -> bool:
    """Whether there is a choice."""
    return len(_offered()[0]) > 1


def _offered() -> tuple[dict[str, str], str]:
    """Titles by line, and what is wrong with what the owner named."""
    if not os.environ.get("DML_BACKENDS", "").strip():
        return _HERE, ""
    from dmlcore.jobs.backends import choice  # late: the router begins with this module, and need not wait for pydantic
    from dmlcore.storage.task import JobError
    from pages.shared.words import sentences as words

    try:
        return {each.text: each.title for each in choice.offered()}, ""
    except JobError as error:
        return _HERE, words.plain(error)
