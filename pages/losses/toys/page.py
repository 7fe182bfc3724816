"""Toys: small networks train before one's eyes, two losses side by side."""

from __future__ import annotations

import streamlit as st

from pages.losses.toys import service, state
from pages.losses.toys.options import options
from pages.shared.state.untrusted import bounded
from pages.shared.widgets import misread_link
from pages.shared.widgets.component import mount


@st.fragment
def canvas() -> None:
    """The training runs of the link, with controls, curves and scores."""
    toy = misread_link.opened(state.Toy)
    mount(
        "losses/toys",
        toy,
        service.TIMELINE.answer,
        key="toys",
        query=toy.to_query(),
        step=int(bounded(st.query_params.get("step"), 0, state.MOST_STEPS, 0)),
        recorded=toy == state.Toy(),
        options=options(),
    )


st.title("Toy training runs", anchor=False)
st.markdown(
    "A small network maps points of space to a plane, or a frozen one images to embeddings, and a loss tells which "
    "to bring together. Watch two losses, or two poolings, train on **the same data, seed and clock**; pause, scrub "
    "back, change a setting while it runs."
)
canvas()
