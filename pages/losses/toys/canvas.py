"""Mounts the toys component with the state of the link; everything after that goes over its socket."""

from __future__ import annotations

from functools import cache
from typing import Any

import streamlit as st

from dmlcore import data, losses, pooling
from dmlcore.catalogue import Slider
from dmlcore.replay import toy_runs
from pages.losses.toys import service as toys_service
from pages.losses.toys import state as toys_state
from pages.losses.toys.state import GATE, POOLINGS
from pages.shared.server import static_files
from pages.shared.server.schema import loss
from pages.shared.state.untrusted import bounded
from pages.shared.widgets import misread_link

KEY = "toys"
TITLES = {"cub": "Photographs of birds"}
NETWORKS = {
    "cub": "SqueezeNet with ImageNet weights, frozen; pooling, linear",
    "glyphs": "four blocks of convolutions trained here, frozen; pooling, linear",
}
_toys = static_files.component("losses/toys")


@st.fragment
def show() -> None:
    """The trainings of the link, with controls, curves and scores."""
    state: dict[str, Any] = st.session_state.get(KEY) or {}
    query = st.query_params.to_dict()
    with misread_link.told():
        toy = toys_state.from_query(query)
    _toys(
        key=KEY,
        data={
            "toy": toys_state.to_json(toy),
            "query": toys_state.to_query(toy),
            "step": int(bounded(query.get("step"), 0, toys_state.MOST_STEPS, 0)),
            "idle": not query,
            "recorded": toy == toys_state.Toy(),
            "hide": query.get("hide", "")[:200].split(","),
            "socket": query.get("socket") != "off",
            "answer": static_files.fallback(state.get("ask"), toys_service.answer),
            "options": options(),
        },
        on_ask_change=_nothing,
    )


@cache
def options() -> dict[str, Any]:
    """What the panel offers, with a sentence for each."""
    parts = {"train": "training part", "test": "test part"}
    helps = {"train": "What the network learns from.", "test": "What it never sees: of the Gaussians, other classes."}
    moves = {
        "both": "Pulls and pushes move the network, as in any training.",
        "pulls": "Only distances between samples of one class have a gradient.",
        "pushes": "Only distances between samples of different classes have a gradient.",
    }
    return {
        "data": {
            name: {"title": TITLES.get(name, data.describe(name).title), "help": data.describe(name).sentence}
            for name in toy_runs.offered()
        },
        "part": {k: {"title": t, "help": helps[k]} for k, t in parts.items()},
        "moves": {k: {"title": k, "help": text} for k, text in moves.items()},
        "sided": [name for name in (*losses.names(), *losses.batch_names()) if toys_state.sided(name)],
        "optimiser": {"rmsprop": {"title": "RMSprop", "help": ""}, "adam": {"title": "Adam", "help": ""}},
        "batch_losses": {name: loss(losses.describe(name)) for name in losses.batch_names()},
        "limits": toys_state.LIMITS
        | {"rate": toys_state.RATES, "steps": toys_state.MOST_STEPS, "changes": toys_state.MOST_CHANGES},
        "presets": [
            {"title": p.title, "caption": p.caption, "toy": toys_state.to_json(p.toy)}
            for p in toys_state.PRESETS
            if "cub" in toy_runs.offered() or "data=cub" not in p.query
        ],
        "pictures": {name: NETWORKS[name] for name in toy_runs.PICTURES},
        "poolings": {name: {"title": pooling.describe(name).title, "help": ""} for name in POOLINGS},
        "gated": [name for name in POOLINGS if toys_state.Side(pooling=name).gated],
        "gate": [
            {"name": key, "symbol": parameter.symbol, "help": parameter.help, "low": low, "high": high}
            | {"default": usual, "log": key == "epsilon", "step": 0.01}
            for key, (low, high, usual) in GATE.items()
            if isinstance(parameter := pooling.describe("gsp").parameters[key], Slider)
        ],
        "second": toys_state.to_json(toys_state.Toy())["sides"][1],
        "recent": toy_runs.RECENT,
        "not_stated": toy_runs.NOT_STATED,
    }


def _nothing() -> None:
    """Streamlit drops writes to state keys without a callback."""
