"""The microscope page: mounts its component; the component keeps the link itself."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pages.losses.fields.pair_weights import service as pair_weights_service
from pages.losses.fields.pair_weights.state import KEPT_APART, SLIDES, MicroscopeView
from pages.shared.server import static_files
from pages.shared.widgets import misread_link

KEY = "microscope"

_maps = static_files.component("losses/fields/pair_weights")


@st.fragment
def show() -> None:
    """Two maps of pair weights, their sliders and the triplet under the cursor."""
    state: dict[str, Any] = st.session_state.get(KEY) or {}
    query = st.query_params.to_dict()
    with misread_link.told():
        view = MicroscopeView.from_query(query)
    _maps(
        key=KEY,
        data={
            "view": view.to_json(),
            "query": view.link(),
            "slides": [{"title": s.title, "caption": s.caption, "view": s.view.to_json()} for s in SLIDES],
            "kept": KEPT_APART,
            "hide": query.get("hide", "")[:200].split(","),
            "socket": query.get("socket") != "off",
            "answer": static_files.fallback(state.get("ask"), pair_weights_service.answer),
        },
        on_ask_change=_nothing,
    )


def _nothing() -> None:
    """Streamlit drops writes to state keys without a callback."""
