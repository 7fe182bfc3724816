"""Fields page: the force field of a triplet loss in the plane, with points to drag and parameters to change."""

from __future__ import annotations

from urllib.parse import urlencode

import streamlit as st

from pages.shared.plane import service
from pages.shared.plane.state import FIRST, LANDSCAPE, Scene
from pages.shared.state.untrusted import bounded
from pages.shared.widgets import first_loss, menu
from pages.shared.widgets.live_component import Presentation, mount, opened
from pages.shared.words import glossary

LECTURE = Presentation(
    "Force fields of triplet losses",
    "{loss}: colour shows the loss if N were there; arrows show the force on N.",
    ("loss", "r", "m1", "m"),
    (
        "Anchor A and positive P are of one class and attract; the negative N, of another class, is pushed away.",
        "Drag N slowly outwards: the push changes with distance as the formula says, and ends at the line loss = 0.",
        "Beyond that line the triplet is satisfied and its gradient is zero. In the hatched hole the upper clamp "
        "drops it.",
        "Choose FaceNet: pull and push grow with distance. With the distance-sensitive loss and r = 2 the push decays.",
        "Question for the audience: where would you put N so that it is pushed hardest?",
    ),
)


@st.fragment
def canvas() -> None:
    """Mount the force field and its panels; the component updates it over a WebSocket, without script reruns."""
    scene, grid = opened(Scene, first=FIRST), st.query_params.get("grid")
    mount(
        "kit/plane",
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
    "An **anchor** A attracts its **positive** P (same class) and repels a **negative** N (another class). "
    "Drag a point or move a slider. Colour shows the loss if N were there; arrows show the force on N.",
    help=glossary.explain("anchor, positive, negative", "force", "active region", "clamp window", "margin"),
)
canvas()
