"""Charges page: labelled points in the plane that move under the forces of a triplet loss."""

from __future__ import annotations

import streamlit as st

from pages.losses.charges import service, state
from pages.shared.widgets import first_loss
from pages.shared.widgets.live_component import Presentation, mount_timeline, opened
from pages.shared.words import glossary

LECTURE = Presentation(
    "Charges",
    "{loss}: all points move at once, each under the forces of its triplets.",
    ("time", "loss", "r", "m1", "m"),
    (
        "There is no network: the embeddings move freely, like charges. One colour and shape is one class.",
        "Space plays and pauses; the arrow keys step. Drag a point while the simulation is paused.",
        "Change the loss while it plays: the new loss applies from that step on.",
        "Active is the share of triplets with a gradient; at 0 nothing moves.",
    ),
)


@st.fragment
def canvas() -> None:
    """Mount the simulation described by the URL, with its controls, curves and phase portrait."""
    spec = opened(state.ChargesState, first=state.PRESETS[0])
    mount_timeline("losses/charges", spec, service.TIMELINE, key="charges", present=LECTURE, options=state.options())


st.title("Charges: embeddings that attract and repel", anchor=False)
st.markdown(
    "Each point is an embedding; colour and shape show its class. **Equal classes attract, different classes repel.** "
    "Drag a point, move a slider, and play.",
    help=glossary.explain("force", "clamp window", "margin"),
)
canvas()
first_loss.caption()
