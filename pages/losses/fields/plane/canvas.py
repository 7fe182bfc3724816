"""The fields page's component: mounts it with the scene of the link; carries its questions where no socket opens."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import streamlit as st

from pages.shared.plane import service as plane_service
from pages.shared.plane.state import Scene
from pages.shared.server import static_files
from pages.shared.state.untrusted import bounded
from pages.shared.widgets import misread_link

KEY = "field"
KEPT_APART = ("hide", "socket", "grid")  # query parameters that are no part of the scene

_stage = static_files.component("shared/plane")


@st.fragment
def show() -> None:
    """The plane with its panels; all that moves there is the component's and the socket's business."""
    state: dict[str, Any] = st.session_state.get(KEY) or {}
    query = st.query_params.to_dict()
    with misread_link.told():
        scene = Scene.from_query({k: v for k, v in query.items() if k not in KEPT_APART})
    _stage(
        key=KEY,
        data={
            "scene": scene.to_json(),
            "query": urlencode(scene.to_query()),
            "hide": query.get("hide", "")[:200].split(","),
            "idle": not query,
            "grid": round(bounded(query["grid"], 41, 101, 81)) if "grid" in query else None,
            "socket": query.get("socket") != "off",
            "answer": static_files.fallback(state.get("ask"), plane_service.answer),
        },
        on_ask_change=_nothing,
    )


def _nothing() -> None:
    """Streamlit drops writes to state keys without a callback."""
