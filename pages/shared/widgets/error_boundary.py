"""Error boundaries: a damaged file of a run breaks only the section of the page that shows the file."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

import streamlit as st

from dmlcore.data import DataError
from dmlcore.storage.arrays import Unreadable
from dmlcore.storage.runs import RunError
from dmlcore.storage.task import JobError
from pages.shared.words import sentences as words

log = logging.getLogger(__name__)


def refusal(title: str, *reasons: str) -> None:
    """Show each reason as an error in a box of its own, as plain text because it may contain names and paths."""
    for reason in reasons:
        with st.container(border=True):
            st.badge(title, icon=":material/error:", color="red")
            st.text(reason)


def attempt(action: Callable[..., object], *arguments: Any) -> None:
    """Call `action(*arguments)`; show a toast with the reason if it is refused. For callbacks of buttons."""
    try:
        action(*arguments)
    except (DataError, JobError, RunError, OSError) as error:
        st.toast(escape(words.plain(error)), icon=":material/error:")


@contextmanager
def alone(what: str) -> Iterator[None]:
    """Run the block; if it fails, show an error in its place and let the rest of the page continue.

    `what` is the subject of the error message.
    """
    try:
        yield
    # A damaged file can raise any exception. Streamlit's rerun and stop do not derive from Exception.
    except Exception as error:
        st.error(f"{what} cannot be shown because a file is damaged.", icon=":material/broken_image:")
        if isinstance(error, (RunError, Unreadable, OSError)):
            st.text(words.plain(error))
        else:
            log.exception("%s cannot be shown", what)
            st.caption("See the server log for details.")
