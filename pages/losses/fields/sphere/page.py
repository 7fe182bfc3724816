"""Sphere page: a triplet loss on normalised embeddings, shown on the circle or the unit sphere."""

from __future__ import annotations

import streamlit as st

from dmlcore import losses
from dmlcore.loss_analysis.normalised import normalisation
from pages.losses.fields.sphere import service
from pages.losses.fields.sphere.state import FIRST, STATES, SphereScene
from pages.losses.fields.sphere.words import named, row, statement
from pages.shared.widgets import first_loss, menu
from pages.shared.widgets.live_component import Presentation, mount, opened
from pages.shared.words import glossary

KEY = "sphere"
# On a narrow screen the table scrolls below its first column, which needs the theme's background colour
# (.streamlit/config.toml). Each of its cells draws the line above it, which its background may cover.
STYLE = """<style>
.st-key-sphere-losses table { border-collapse: separate; border-spacing: 0; }
.st-key-sphere-losses :is(td, th):first-child { position: sticky; left: 0; background: var(--page); }
.st-key-sphere-losses tbody td:first-child { box-shadow: 0 -1px var(--hair); }
.st-key-sphere-losses :is(th, tr:not(:last-child) > td):first-child { border-bottom-color: transparent; }
</style>"""

LECTURE = Presentation(
    "Losses on the unit sphere",
    "{loss} on the unit sphere: only the part of a force along the surface can move a point.",
    ("loss", "r", "m1", "m"),
    (
        "Networks that normalise put every embedding on this sphere. A triplet is three points, hence three angles.",
        "Drag the background to turn the sphere; drag A, P or N along the surface.",
        "Tick radial parts under Controls, what is shown: that part of each force only changes the norm, so "
        "normalisation removes it.",
        "The table shows this share for each loss, and the margin from which on every triplet is active.",
    ),
    "views",
)


@st.fragment
def canvas() -> None:
    """Mount the sphere or circle, then show the effect of normalisation on this loss and a table of all losses."""
    kept = (st.session_state.get(KEY) or {}).get("scene")
    scene = SphereScene.of(kept) if kept else opened(SphereScene, first=FIRST)
    states = [state.to_json() for state in STATES]
    writes = ("scene", "ask")
    mount(
        "losses/fields/sphere",
        scene,
        service.answer,
        key=KEY,
        name="scene",
        writes=writes,
        present=LECTURE,
        states=states,
    )
    loss = scene.module()
    st.subheader(f"Effect of normalisation on {named(loss.formula.title)}", anchor=False)
    st.markdown("\n".join(f"- {line}" for line in statement(loss, normalisation(loss))))
    st.markdown("**All losses on the unit sphere**")
    with st.container(key="sphere-losses"):
        st.html(STYLE)
        st.table([row(scene, name) for name in losses.names()], border="horizontal")
    with st.expander("Method", icon=":material/function:"):
        st.markdown(
            "All numbers are computed here. Residuals: 1024 random unit triplets in 3 and 128 dimensions, automatic "
            "differentiation. Extremes: search over all triplets of the sphere. Hyper-parameters are the defaults, "
            "except for the loss chosen above. A margin at or above the last column keeps every triplet active."
        )


menu.views("sphere", "Losses on the unit sphere")
st.markdown(
    "Normalised embeddings are points on the unit sphere. Drag **anchor** A, **positive** P or **negative** N over "
    "it. Colour shows the loss at each position of the moved point; arrows show the tangential force.",
    help=glossary.explain("anchor, positive, negative", "force", "clamp window"),
)
canvas()
first_loss.caption()
