"""Mounts the component of GAP or GSP with the state of the link, and shows what the full study measured."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dmlcore import studies
from dmlcore.data import tokens
from dmlcore.models import TOKEN_BOUND
from dmlcore.spec import SpecError
from pages._ui import assets, gap_or_gsp_service
from pages._ui import gap_or_gsp_spec as spec
from pages._ui.untrusted import bounded

KEY = "gap_or_gsp"
UNASKED = 600  # steps that play when the page opens by itself
_gap_or_gsp = assets.component("gap_or_gsp")


@st.fragment
def show() -> None:
    """Both trainings of the link, with controls and curves."""
    state: dict[str, Any] = st.session_state.get(KEY) or {}
    query = st.query_params.to_dict()
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
            "answer": assets.fallback(state.get("ask"), gap_or_gsp_service.answer),
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


def show_study() -> None:
    """The scores of the full study, if they were measured, beside what the source reports."""
    try:
        found, asked = studies.load("tokens"), studies.read("tokens")
    except (SpecError, OSError):
        return
    if found is None:
        return
    rows = [row for row in studies.table(found.runs) if "map_at_r" in row]
    st.subheader("The full study", anchor=False)
    st.markdown(f"Test MAP@R after training to the end, mean ± deviation over seeds. **The source:** {asked.claim}")
    if sentence := comparison(rows):
        st.markdown(sentence)
    names = {"map_at_r": "MAP@R", "recall_at_1": "R@1", "overlap.hull_iou": "hull IoU"} | {
        "overlap.histogram_intersection": "histogram intersection"
    }
    st.table(
        [
            {"pooling": row["variant"], "seeds": row["seeds"]}
            | {title: _cell(name, row[name]) for name, title in names.items() if name in row}
            for row in rows
        ]
    )
    for remark in asked.remarks:
        st.caption(remark)


def comparison(rows: list[dict[str, Any]]) -> str:
    """How many points GSP gains over GAP with the decided settings, in a sentence; empty unless both are there."""
    by_name = {row["variant"]: row["map_at_r"][0] for row in rows}
    if not {"GAP", "GSP"} <= by_name.keys():
        return ""
    gain = 100 * (by_name["GSP"] - by_name["GAP"])
    verb = "gains" if gain >= 0 else "loses"
    return f"Here GSP {verb} **{abs(gain):.1f} points** over GAP with the decided settings, dimension 2."


def _cell(name: str, value: tuple[float, float | None]) -> str:
    mean, deviation = value
    factor, digits, unit = (100, 1, " %") if name in ("map_at_r", "recall_at_1") else (1, 3, "")
    spread = "" if deviation is None else f" ± {factor * deviation:.{digits}f}"
    return f"{factor * mean:.{digits}f}{spread}{unit}"


def _nothing() -> None:
    """Streamlit drops writes to state keys without a callback."""
