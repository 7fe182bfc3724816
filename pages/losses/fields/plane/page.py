"""Force fields: drag the three points, move the sliders, and see how a triplet loss pushes and pulls."""

from __future__ import annotations

from urllib.parse import urlencode

import streamlit as st

from pages.shared.plane import service
from pages.shared.plane.state import Scene
from pages.shared.state.untrusted import bounded
from pages.shared.widgets import misread_link
from pages.shared.widgets.component import socket_component

KEPT_APART = ("hide", "socket", "grid")  # query parameters that are no part of the scene


@st.fragment
def canvas() -> None:
    """The plane with its panels; all that moves there is the business of component and socket."""
    query = st.query_params.to_dict()
    with misread_link.told():
        scene = Scene.from_query({k: v for k, v in query.items() if k not in KEPT_APART})
    socket_component(
        "shared/plane",
        service.answer,
        key="field",
        data={
            "scene": scene.to_json(),
            "query": urlencode(scene.to_query()),
            "grid": round(bounded(query["grid"], 41, 101, 81)) if "grid" in query else None,
        },
    )


st.title("Force fields of triplet losses", anchor=False)
st.markdown(
    "An **anchor** A pulls its **positive** P, of the same class, and pushes a **negative** N, of another. "
    "Drag a point or move a slider: colour is the loss the scanning point would have there, arrows the force on it."
)
canvas()
