"""Charges: many points of several classes move as a triplet loss pulls and pushes them."""

from __future__ import annotations

import streamlit as st

from pages.losses.charges import service, state
from pages.shared.widgets import misread_link
from pages.shared.widgets.component import mount_timeline


@st.fragment
def canvas() -> None:
    """The charges of the link, with controls, curves and phase portrait."""
    spec = misread_link.opened(state.ChargesState)
    mount_timeline("losses/charges", spec, service.TIMELINE, key="charges", options=state.options())


st.title("Charges in a medium of negative permittivity", anchor=False)
st.markdown(
    "Every point is an embedding, its colour and shape a class. As charges would in a medium of negative permittivity, "
    "**like attract and unlike repel**: drag a point, move a slider, and let the loss drive them."
)
canvas()
