"""Door to the page Bring your own: a large link with one sentence."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.shared.widgets import menu

LABEL = "Look at your own embeddings"
STYLE = """<style>
.st-key-own-embeddings-link .stPageLink a { padding: .55rem 1rem; border-radius: .5rem; background: #0072B2; }
.st-key-own-embeddings-link .stPageLink a:is(:hover, :focus-visible) { background: #005A8E; }
.st-key-own-embeddings-link .stPageLink a :is(p, span) { color: #fff; font-weight: 600; font-size: 1.05rem; }
</style>"""


def show_link() -> DeltaGenerator:
    """Show the link as a button with a sentence next to it, which wraps below on narrow screens; return the row."""
    st.html(STYLE)
    row = st.container(horizontal=True, vertical_alignment="center", key="own-embeddings")
    with row:
        with st.container(width="content", key="own-embeddings-link"):
            menu.link("bring_your_own", LABEL)
        st.markdown(
            "Drop vectors from any network, with labels and images if you have them. Nothing is trained.",
            width="content",
        )
    return row
