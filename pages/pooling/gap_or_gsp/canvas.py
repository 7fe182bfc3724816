"""Mounts the component of GAP or GSP with the state of the link, and shows what the full study measured."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dmlcore.data.synthetic import tokens
from dmlcore.models.networks import TOKEN_BOUND
from pages.pooling.gap_or_gsp import service as gap_or_gsp_service
from pages.pooling.gap_or_gsp import state as spec
from pages.shared.server import static_files
from pages.shared.state.untrusted import bounded
from pages.shared.widgets import misread_link

KEY = "gap_or_gsp"
UNASKED = 600  # steps that play when the page opens by itself
_gap_or_gsp = static_files.component("pooling/gap_or_gsp")


@st.fragment
def show() -> None:
    """Both trainings of the link, with controls and curves."""
    state: dict[str, Any] = st.session_state.get(KEY) or {}
    query = st.query_params.to_dict()
    with misread_link.told():
        study = spec.from_query(query)
    chosen = int(bounded(query.get("class"), 0, tokens.CLASSES, 0))
    _gap_or_gsp(
        key=KEY,
        data={
            "study": spec.to_json(study),
            "query": spec.to_query(study),
            "step": int(bounded(query.get("step"), 0, spec.MOST_STEPS, 0)) or None,
            "chosen": chosen - 1 if chosen else None,
            "idle": not query,
            "hide": query.get("hide", "")[:200].split(","),
            "socket": query.get("socket") != "off",
            "answer": static_files.fallback(state.get("ask"), gap_or_gsp_service.answer),
            "options": options(),
        },
        on_ask_change=_nothing,
    )


def options() -> dict[str, Any]:
    """What the panel offers."""
    return {
        "limits": spec.LIMITS | {"steps": spec.MOST_STEPS, "changes": spec.MOST_CHANGES, "unasked": UNASKED},
        "onTheWay": spec.ON_THE_WAY,
        "memory": spec.MEMORY,
        "bound": TOKEN_BOUND,
        "classes": [f"tokens {ids[0]} to {ids[-1]}" for ids in map(tokens.token_ids_of, range(tokens.CLASSES))],
        "sentence": "Both sides start from the same tokens and see the same batches of 16 × 4 bags; only the pooling "
        "differs. Change a slider while it runs: from that step on it is another training.",
        "hint": "Point at a token or a bag, or choose a class: its tokens, bags and hull stand out, and here is said "
        "which shared tokens it still uses.",
        "presets": [
            {"title": p.title, "caption": p.caption, "study": spec.to_json(spec.from_query(p.parsed))}
            for p in spec.PRESETS
        ],
    }


def _nothing() -> None:
    """Streamlit drops writes to state keys without a callback."""
