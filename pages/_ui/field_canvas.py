"""The plane of the fields page: mounts the component, keeps the link, and explains the scene it last committed."""

from __future__ import annotations

import math
from typing import Any

import streamlit as st

from dmlcore import losses
from pages._ui import assets, field_service
from pages._ui.scene import POINTS, Scene

KEY = "field"
_KEPT_APART = ("hide", "socket")  # query parameters that are no part of the scene


_plane = assets.component("field_canvas")


@st.fragment
def show() -> None:
    """The plane with its panel, and beside it formula, source and numbers of the committed scene."""
    state: dict[str, Any] = st.session_state.get(KEY) or {}
    scene, rev = _current(state.get("scene"))
    row = st.container(horizontal=True, gap="medium")
    with row.container(width=900):
        _plane(
            key=KEY,
            data={
                "scene": scene.to_json(),
                "rev": rev,
                "hide": st.query_params.get("hide", "")[:200].split(","),
                "idle": not st.query_params.to_dict(),
                "socket": st.query_params.get("socket") != "off",
                "answer": assets.fallback(state.get("ask"), field_service.answer),
            },
            on_scene_change=_nothing,
            on_ask_change=_nothing,
        )
    with row.container(width=350):
        _explain(scene)


def _nothing() -> None:
    """Streamlit drops writes to state keys without a callback."""


def _current(committed: Any) -> tuple[Scene, int]:
    """The scene and a number that rises when Python, not the hand, changed it (a link was opened or gone back to)."""
    seen: dict[str, Any] = st.session_state.setdefault("field_seen", {"rev": 0, "committed": None, "query": None})
    query = {k: v for k, v in st.query_params.to_dict().items() if k not in _KEPT_APART}
    if committed is not None and committed != seen["committed"]:
        scene = Scene.of(committed)
        seen |= {"committed": committed, "query": scene.to_query(), "scene": scene}
        kept = {k: st.query_params[k] for k in _KEPT_APART if k in st.query_params}
        st.query_params.from_dict(scene.to_query() | kept)
    elif query != seen["query"]:
        seen |= {"rev": seen["rev"] + 1, "query": query, "scene": Scene.from_query(query)}
    return seen["scene"], seen["rev"]


def _explain(scene: Scene) -> None:
    formula = losses.formula(scene.loss)
    st.subheader(formula.title, anchor=False)
    st.markdown(formula.sentence)
    st.latex(_energy(scene))
    st.caption(f"{formula.source}. {_window(scene)}")
    numbers = field_service.readout(scene)
    rows = ["| | x | y | force x | force y |", "|:--|--:|--:|--:|--:|"]
    for name, force in zip(POINTS, numbers["forces"], strict=True):
        at = getattr(scene, name)
        rows.append(f"| {name} | {at[0]:.3g} | {at[1]:.3g} | {force[0]:.4g} | {force[1]:.4g} |")
    st.markdown("\n".join(rows))
    st.caption(
        "Force is minus the gradient of the clamped loss, by automatic differentiation. The address of this page "
        "reopens this very view."
    )


def _energy(scene: Scene) -> str:
    formula = losses.formula(scene.loss)
    margin = f" + {formula.parameters[formula.margin.name].symbol}" if formula.margin else ""
    return rf"E = {formula.latex}{margin}"


def _window(scene: Scene) -> str:
    """The clamp in words, with the numbers put in."""
    loss = scene.module()
    values = ", ".join(
        f"${parameter.symbol} = {_plain(scene.hyper[key])}$"
        for key, parameter in losses.formula(scene.loss).sliders.items()
    )
    upper = "no upper clamp" if loss.m2 == math.inf else f"upper clamp {loss.m2:.4g}"
    return f"{values + '; ' if values else ''}the loss is E clamped to zero from below, {upper}."


def _plain(value: float | str) -> str:
    if isinstance(value, str):
        return rf"\text{{{value}}}"
    return r"\infty" if value == math.inf else f"{value:.4g}"
