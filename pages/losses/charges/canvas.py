"""Mounts the charges component with the state of the link; everything after that goes over its socket."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dmlcore import mining
from dmlcore.simulation import MOST_CHANGES, NORMALISATIONS, OPTIMISERS, REACH, SIDES, STARTS, STRIDE
from dmlcore.simulation.spec import ALL, MOST_CLASSES, MOST_PER_CLASS, MOST_POINTS, MOST_STEPS
from pages.losses.charges import service as charges_service
from pages.losses.charges import state as charges_state
from pages.shared.server import static_files
from pages.shared.state.untrusted import bounded
from pages.shared.widgets import misread_link

KEY = "charges"
_charges = static_files.component("losses/charges")


@st.fragment
def show() -> None:
    """The charges of the link, with controls, curves and phase portrait."""
    state: dict[str, Any] = st.session_state.get(KEY) or {}
    query = st.query_params.to_dict()
    with misread_link.told():
        spec = charges_state.from_query(query)
    _charges(
        key=KEY,
        data={
            "spec": charges_state.to_json(spec),
            "query": charges_state.to_query(spec),
            "step": int(bounded(query.get("step"), 0, MOST_STEPS, 0)),
            "idle": not query,
            "hide": query.get("hide", "")[:200].split(","),
            "socket": query.get("socket") != "off",
            "answer": static_files.fallback(state.get("ask"), charges_service.answer),
            "options": options(),
        },
        on_ask_change=_nothing,
    )


def options() -> dict[str, Any]:
    """What the panel offers, with a sentence for each."""
    chosen = [mining.MINERS[name] for name in mining.on_distances()]
    miners = {m.name: {"title": m.title, "help": f"{m.sentence} {m.source}"} for m in chosen}
    everything = {"title": "All triplets", "help": "Every valid triplet: no miner."}
    return {
        "start": {s.name: {"title": s.title, "help": s.sentence} for s in STARTS.values()},
        "optimiser": {k: {"title": o.title, "help": "of torch.optim"} for k, o in OPTIMISERS.items()},
        "miner": {ALL: everything} | miners,
        "side": {k: {"title": k, "help": text} for k, text in SIDES.items()},
        "normalise": {
            k: {"title": title, "help": NORMALISATIONS[k]}
            for k, title in (("none", "free"), ("renormalise", "circle: renormalise"), ("project", "circle: project"))
        },
        "limits": {
            "classes": MOST_CLASSES,
            "per_class": MOST_PER_CLASS,
            "points": MOST_POINTS,
            "changes": MOST_CHANGES,
            "moved": charges_state.MOST_MOVED,
            "steps": MOST_STEPS,
            "reach": REACH,
            "stride": STRIDE,
            "rate": [charges_state.SMALLEST_STEP, charges_state.LARGEST_STEP],
        },
        "presets": [
            {"title": p.title, "caption": p.caption, "spec": charges_state.to_json(charges_state.from_query(p.parsed))}
            for p in charges_state.PRESETS
        ],
    }


def _nothing() -> None:
    """Streamlit drops writes to state keys without a callback."""
