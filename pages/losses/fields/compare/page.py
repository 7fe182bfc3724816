"""Compare page: force fields of two to four losses for the same points, their difference, and a test of equality."""

from __future__ import annotations

import streamlit as st

from pages.losses.fields.compare import presets, service, state
from pages.losses.fields.compare.state import ComparisonView
from pages.shared.plane.state import LANDSCAPE, Scene
from pages.shared.widgets import menu
from pages.shared.widgets.live_component import explained, mount, opened
from pages.shared.words import glossary


@st.fragment
def canvas() -> None:
    """Mount the force fields, their difference and the result of the equality test."""
    asked = st.query_params.to_dict()
    if asked.get("from") == "plane":
        with explained():
            comparison = state.compare_with_default(Scene.from_query(asked))
    else:
        comparison = opened(ComparisonView)
    offered = presets.presets()
    mount(
        "losses/fields/compare",
        comparison,
        service.answer,
        key="compare",
        name="comparison",
        presets=offered,
        landscape=LANDSCAPE,
    )


menu.views("compare", "Are these the same loss?")
st.markdown(
    "The same triplet under several losses: an **anchor** A, a **positive** P and a **negative** N. Drag a point in "
    "any plane to move it in all. The last map shows the difference of two losses.",
    help=glossary.explain("anchor, positive, negative", "force", "clamp window"),
)
canvas()
