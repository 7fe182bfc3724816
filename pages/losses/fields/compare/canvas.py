"""The compare page: mounts its component; the component keeps the link itself."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pages.losses.fields.compare import presets
from pages.losses.fields.compare import service as compare_service
from pages.losses.fields.compare.state import Comparison
from pages.shared.server import static_files
from pages.shared.widgets import misread_link

KEY = "compare"

_planes = static_files.component("losses/fields/compare")


@st.fragment
def show() -> None:
    """The planes, their difference and the verdict."""
    state: dict[str, Any] = st.session_state.get(KEY) or {}
    query = st.query_params.to_dict()
    with misread_link.told():
        comparison = Comparison.from_query(query)
    _planes(
        key=KEY,
        data={
            "comparison": comparison.to_json(),
            "query": comparison.link(),
            "presets": presets.presets(),
            "hide": query.get("hide", "")[:200].split(","),
            "idle": not query,
            "socket": query.get("socket") != "off",
            "answer": static_files.fallback(state.get("ask"), compare_service.answer),
        },
        on_ask_change=_nothing,
    )


def _nothing() -> None:
    """Streamlit drops writes to state keys without a callback."""
