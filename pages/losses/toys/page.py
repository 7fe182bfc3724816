"""Toys: small networks train before one's eyes, two losses side by side."""

from __future__ import annotations

import streamlit as st

from pages.losses.toys import service, state
from pages.losses.toys.options import options
from pages.shared.widgets import misread_link
from pages.shared.widgets.component import mount_timeline


@st.fragment
def canvas() -> None:
    """The training runs of the link, with controls, curves and scores."""
    toy = misread_link.opened(state.Toy)
    recorded = toy == state.Toy()
    mount_timeline("losses/toys", toy, service.TIMELINE, key="toys", recorded=recorded, options=options())


st.title("Toy training runs", anchor=False)
st.markdown(
    "A small network maps points of space to a plane, or a frozen one images to embeddings, and a loss tells which "
    "to bring together. Watch two losses, or two poolings, train on **the same data, seed and clock**; pause, scrub "
    "back, change a setting while it runs."
)
canvas()
