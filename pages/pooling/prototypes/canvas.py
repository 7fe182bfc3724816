"""The prototypes page: mounts its component; the component keeps the link itself."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dmlcore import data
from dmlcore.inspection.local import local_features
from dmlcore.storage.runs import RunError, RunStore
from pages.pooling.prototypes import service as prototypes_service
from pages.pooling.prototypes.state import FEWEST, KEPT_APART, LARGEST_TAU, MOST, MOST_SHOWN, PrototypesView
from pages.shared.server import static_files
from pages.shared.widgets import misread_link
from pages.shared.words import titles

KEY = "prototypes"
MOST_RUNS = 30

_plane = static_files.component("pooling/prototypes")


@st.fragment
def show() -> None:
    """The plane of local features, one picture, the controls."""
    state: dict[str, Any] = st.session_state.get(KEY) or {}
    query = st.query_params.to_dict()
    with misread_link.told():
        view = PrototypesView.from_query(query)
    _plane(
        key=KEY,
        data={
            "view": view.to_json(),
            "query": view.link(),
            "sources": sources(view.source),
            "limits": {
                "prototypes": [FEWEST, MOST],
                "per_class": local_features.MOST_PER_CLASS,
                "tau": LARGEST_TAU,
                "shown": MOST_SHOWN,
            },
            "columns": prototypes_service.COLUMNS,
            "kept": KEPT_APART,
            "hide": query.get("hide", "")[:200].split(","),
            "socket": query.get("socket") != "off",
            "answer": static_files.fallback(state.get("ask"), prototypes_service.answer),
        },
        on_ask_change=_nothing,
    )


def sources(wanted: str) -> dict[str, str]:
    """What local features can be taken from, by name; the source of the link is among them even if it is gone."""
    found = {"digits3": "Digits, patches of 3 × 3", "digits4": "Digits, patches of 4 × 4"}
    if data.available("cifar10") is not None and local_features.pretrained_weights() is not None:
        found["cifar10"] = "CIFAR-10, ResNet20 classifier"
    for run in RunStore().newest(MOST_RUNS):
        try:
            if local_features.has_pictures(run.spec):
                found[f"run:{run.id}"] = f"Run {titles.label(run)}"
        except RunError:  # deleted this very moment
            continue
    return found if wanted in found else found | {wanted: f"{wanted.removeprefix('run:')} (not here)"}


def _nothing() -> None:
    """Streamlit drops writes to state keys without a callback."""
