"""The compare page: mounts its component; the component keeps the link itself."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pages._ui import assets, compare_presets, compare_service, misread
from pages._ui.comparison import Comparison

KEY = "compare"

_planes = assets.component("compare")


@st.fragment
def show() -> None:
    """The planes, their difference and the verdict."""
    state: dict[str, Any] = st.session_state.get(KEY) or {}
    query = st.query_params.to_dict()
    with misread.told():
        comparison = Comparison.from_query(query)
    _planes(
        key=KEY,
        data={
            "comparison": comparison.to_json(),
            "query": comparison.link(),
            "presets": compare_presets.presets(),
            "hide": query.get("hide", "")[:200].split(","),
            "idle": not query,
            "socket": query.get("socket") != "off",
            "answer": assets.fallback(state.get("ask"), compare_service.answer),
        },
        on_ask_change=_nothing,
    )


def _nothing() -> None:
    """Streamlit drops writes to state keys without a callback."""
