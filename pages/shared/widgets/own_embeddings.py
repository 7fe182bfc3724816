"""Door to the page Bring your own: a large link with one sentence."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.shared.widgets import menu

LABEL = "Look at your own embeddings"


def show_link() -> DeltaGenerator:
    """Show the link as a button with a sentence next to it, which wraps below on narrow screens; return the row."""
    row = st.container(horizontal=True, vertical_alignment="center", key="own-embeddings")
    with row:
        with st.container(width="content", key="primary-links-own"):
            menu.link("bring_your_own", LABEL)
        st.markdown(
            "Drop vectors from any network, with labels and images if you have them. Nothing is trained.",
            width="content",
        )
    return row
