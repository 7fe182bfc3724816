"""Parts of a page that fail alone: what one run's files do to its reader takes nothing else from the screen."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from dmlcore.storage.arrays import Unreadable
from dmlcore.storage.runs import RunError
from pages.shared.words import sentences as words

log = logging.getLogger(__name__)


def refusal(title: str, *reasons: str) -> None:
    """What cannot be done, and each reason in a box, as it is: it may hold names and paths."""
    for reason in reasons:
        with st.container(border=True):
            st.badge(title, icon=":material/error:", color="red")
            st.text(reason)


@contextmanager
def alone(what: str) -> Iterator[None]:
    """If the block fails, `what` (begins the sentence) cannot be shown, and why; the page goes on behind it."""
    try:
        yield
    except Exception as error:  # whatever a damaged file brings about; a rerun or stop of the page is none
        st.error(f"{what} cannot be shown: something in its files is damaged.", icon=":material/broken_image:")
        if isinstance(error, (RunError, Unreadable, OSError)):
            st.text(words.plain(error))
        else:
            log.exception("%s cannot be shown", what)
            st.caption("The log of the server says more.")
