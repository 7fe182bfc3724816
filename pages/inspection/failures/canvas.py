"""The plane of a failure: mounts its component; carries its questions where no socket opens."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import streamlit as st

from dmlcore.inspection.failure.one_step import Failure
from dmlcore.spec import RunSpec
from pages.inspection.failures import service as failures_service
from pages.inspection.failures.state import RealScene, home
from pages.shared.server import static_files
from pages.shared.widgets import misread_link

KEY = "failure"
HIDDEN = ("situations", "figures", "take", "margins")  # parts of the fields page that do not fit a real triplet

_stage = static_files.component("inspection/failures")


def show(of: dict[str, Any], case: Failure, spec: RunSpec, pictures: list[str]) -> None:
    """The plane with its panels and tables. of: run and the three samples; pictures: their addresses."""
    state: dict[str, Any] = st.session_state.get(KEY) or {}
    query = st.query_params.to_dict()
    at_home = home(case.triplet, spec)
    with misread_link.told():
        scene = RealScene.of_link(at_home, query)
    rate, way = failures_service.asked(query)
    circle = (1 - case.triplet.height**2) ** 0.5 / at_home.unit if case.on_sphere and case.triplet.height < 1 else None
    _stage(
        key=KEY,
        data={
            "scene": scene.to_json(),
            "home": at_home.to_json(),
            "circle": circle,
            "of": of,
            "pictures": pictures,
            "rate": rate,
            "by": way,
            "rates": failures_service.RATES,
            "query": urlencode(failures_service.link(of, scene, rate, way)),
            "hide": [*HIDDEN, *query.get("hide", "")[:200].split(",")],
            "idle": False,
            "socket": query.get("socket") != "off",
            "answer": static_files.fallback(state.get("ask"), failures_service.answer),
        },
        on_ask_change=_nothing,
    )


def _nothing() -> None:
    """Streamlit drops writes to state keys without a callback."""
