"""Mounts the charges component with the state of the link; everything after that goes over its socket."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dmlcore import mining
from dmlcore.simulation import MOST_CHANGES, NORMALISATIONS, OPTIMISERS, REACH, SIDES, STARTS, STRIDE
from dmlcore.simulation.spec import ALL, MOST_CLASSES, MOST_PER_CLASS, MOST_POINTS, MOST_STEPS
from pages._ui import assets, charges_service, charges_spec, misread
from pages._ui.untrusted import bounded

KEY = "charges"
_charges = assets.component("charges")


@st.fragment
def show() -> None:
    """The charges of the link, with controls, curves and phase portrait."""
    state: dict[str, Any] = st.session_state.get(KEY) or {}
    query = st.query_params.to_dict()
    with misread.told():
        spec = charges_spec.from_query(query)
    _charges(
        key=KEY,
        data={
            "spec": charges_spec.to_json(spec),
            "query": charges_spec.to_query(spec),
            "step": int(bounded(query.get("step"), 0, MOST_STEPS, 0)),
            "idle": not query,
            "hide": query.get("hide", "")[:200].split(","),
            "socket": query.get("socket") != "off",
            "answer": assets.fallback(state.get("ask"), charges_service.answer),
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
            "moved": charges_spec.MOST_MOVED,
            "steps": MOST_STEPS,
            "reach": REACH,
            "stride": STRIDE,
            "rate": [charges_spec.SMALLEST_STEP, charges_spec.LARGEST_STEP],
        },
        "presets": [
            {"title": p.title, "caption": p.caption, "spec": charges_spec.to_json(charges_spec.from_query(p.parsed))}
            for p in charges_spec.PRESETS
        ],
    }


def _nothing() -> None:
    """Streamlit drops writes to state keys without a callback."""
