"""Charges: many points of several classes that move under the forces of a triplet loss."""

from __future__ import annotations

import streamlit as st

from pages.losses.charges import service, state
from pages.shared.widgets import first_loss, misread_link
from pages.shared.widgets.component import mount_timeline
from pages.shared.widgets.presentation import Presentation

LECTURE = Presentation(
    "Charges",
    "{loss}: all points move at once, each as the triplets it is in pull and push it.",
    ("time", "loss", "r", "m1", "m"),
    (
        "No network: the embeddings themselves are free, as charges would be. One colour and shape is one class.",
        "Space plays and pauses, the arrow keys step. Lay a point elsewhere with the mouse while it stands.",
        "Change the loss while it plays: from this step on the other law holds.",
        "Active is the share of triplets that still feel a force; when it is 0 everything rests.",
    ),
)


@st.fragment
def canvas() -> None:
    """Mount the simulation of the URL with controls, curves and phase portrait."""
    spec = misread_link.opened(state.ChargesState, first=state.PRESETS[0])
    mount_timeline("losses/charges", spec, service.TIMELINE, key="charges", present=LECTURE, options=state.options())


st.title("Charges in a medium of negative permittivity", anchor=False)
st.markdown(
    "Every point is an embedding, its colour and shape a class. As charges would in a medium of negative permittivity, "
    "**like attract and unlike repel**: drag a point, move a slider, and let the loss drive them."
)
canvas()
first_loss.caption()
