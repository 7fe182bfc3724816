"""Runs on a page: which of them the link names, their status as a pill, their names as they are."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Literal

import streamlit as st

from dmlcore.storage.runs import Run, RunError, RunStore

MOST_LISTED = 500  # runs in the table
MOST_CHOSEN = 8  # runs shown together, one colour each

BadgeColour = Literal["red", "orange", "green", "blue", "gray"]
Look = tuple[str, str, BadgeColour]  # word, icon and colour of a badge
# Word, icon and colour of each status: never colour alone.
STATUS: Mapping[str, Look] = {
    "queued": ("queued", ":material/schedule:", "gray"),
    "running": ("running", ":material/play_arrow:", "blue"),
    "done": ("done", ":material/check:", "green"),
    "failed": ("failed", ":material/error:", "red"),
    "cancelled": ("cancelled", ":material/stop_circle:", "gray"),
    "lost": ("lost", ":material/help:", "orange"),
}


def chosen(store: RunStore) -> tuple[list[Run], int]:
    """The runs that ?run=a,b of this page names, and how many of the names are no runs."""
    names = [name for name in st.query_params.get("run", "")[:1000].split(",") if name]
    runs: list[Run] = []
    for name in dict.fromkeys(names[:MOST_CHOSEN]):
        try:
            run = store.open(name)
            _ = run.state(), run.spec  # raises for a run that cannot be read
            runs.append(run)
        except RunError:
            pass
    return runs, len(dict.fromkeys(names)) - len(runs)


def literal(text: str, element: str = "span") -> None:
    """Show text as it is: neither HTML nor Markdown, and its direction stays its own."""
    st.html(f"<{element} style='margin:0'><bdi>{escape(text)}</bdi></{element}>")


def badge(status: str) -> None:
    """The status as a coloured pill with word and icon."""
    word, icon, colour = STATUS[status]
    st.badge(word, icon=icon, color=colour)
