"""Fields: the force field of a triplet loss, with points to drag and parameters to change."""

from __future__ import annotations

from urllib.parse import urlencode

import streamlit as st

from pages.shared.plane import service
from pages.shared.plane.state import FIRST, LANDSCAPE, Scene
from pages.shared.state.untrusted import bounded
from pages.shared.widgets import first_loss, menu, misread_link
from pages.shared.widgets.component import mount
from pages.shared.widgets.presentation import Presentation

LECTURE = Presentation(
    "Force fields of triplet losses",
    "{loss}: colour is the loss N would have there, arrows the force that moves it.",
    ("loss", "r", "m1", "m"),
    (
        "Anchor A and positive P are of one class and attract; the negative N, of another class, is pushed away.",
        "Drag N slowly out: the push changes with the distance as the formula says, and ends at the line loss = 0.",
        "Beyond the line the triplet is satisfied and teaches nothing. Hatched inside: the upper clamp drops it.",
        "Choose FaceNet: its pull and push grow with distance. With the distance-sensitive loss r = 2 the push falls.",
        "Question for the audience: where would you put N so that it is pushed hardest?",
    ),
)


@st.fragment
def canvas() -> None:
    """Mount the plane with its panels; component and WebSocket handle all movement."""
    scene, grid = misread_link.opened(Scene, first=FIRST), st.query_params.get("grid")
    mount(
        "shared/plane",
        scene,
        service.answer,
        key="field",
        name="scene",
        query=urlencode(scene.to_query()),
        present=LECTURE,
        landscape=LANDSCAPE,
        carry="compare",
        note=first_loss.note(),
        grid=None if grid is None else round(bounded(grid, 41, 101, 81)),
    )


menu.views("fields", "Force fields of triplet losses")
st.markdown(
    "An **anchor** A pulls its **positive** P, of the same class, and pushes a **negative** N, of another. "
    "Drag a point or move a slider: colour is the loss the scanning point would have there, arrows the force on it."
)
canvas()
