"""Runs listed in the URL of a page, badges for the status of a run, and verbatim display of text."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Literal

import streamlit as st

from dmlcore.storage.runs import Run, RunError, RunStore

MOST_LISTED = 500  # maximum number of runs in the table
MOST_CHOSEN = 8  # maximum number of runs shown together, one colour each

BadgeColour = Literal["red", "orange", "green", "blue", "gray"]
Look = tuple[str, str, BadgeColour]  # text, icon and colour of a badge
# Text, icon and colour of each status; colour alone would not be accessible.
STATUS: Mapping[str, Look] = {
    "queued": ("queued", ":material/schedule:", "gray"),
    "running": ("running", ":material/play_arrow:", "blue"),
    "done": ("done", ":material/check:", "green"),
    "failed": ("failed", ":material/error:", "red"),
    "cancelled": ("cancelled", ":material/stop_circle:", "gray"),
    "lost": ("lost", ":material/help:", "orange"),
}


def chosen(store: RunStore) -> tuple[list[Run], int]:
    """Return the readable runs in ?run=a,b of the current URL, and the number of runs in it that cannot be read."""
    names = [name for name in st.query_params.get("run", "")[:1000].split(",") if name]
    runs: list[Run] = []
    for name in dict.fromkeys(names[:MOST_CHOSEN]):
        try:
            run = store.open(name)
            _ = run.state(), run.spec  # both raise RunError if the run cannot be read
            runs.append(run)
        except RunError:
            pass
    return runs, len(dict.fromkeys(names)) - len(runs)


def literal(text: str, element: str = "span") -> None:
    """Show text verbatim: HTML and Markdown are not interpreted, and the text direction is detected from the text."""
    st.html(f"<{element} style='margin:0'><bdi>{escape(text)}</bdi></{element}>")


def badge(status: str) -> None:
    """Show the status of a run as a coloured badge with text and icon."""
    word, icon, colour = STATUS[status]
    st.badge(word, icon=icon, color=colour)
