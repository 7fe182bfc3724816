"""Pair weights page: for two losses, the weight of each pair of a triplet as a function of its similarities."""

from __future__ import annotations

import streamlit as st

from pages.losses.fields.pair_weights import service
from pages.losses.fields.pair_weights.state import SLIDES, PairWeightsView
from pages.shared.widgets import first_loss, menu
from pages.shared.widgets.live_component import mount, opened
from pages.shared.words import glossary
from pages.shared.words.formulas import statements


@st.fragment
def canvas() -> None:
    """Mount the pair-weight maps of two losses, their sliders, and the triplet at the pointer."""
    mount(
        "losses/fields/pair_weights",
        opened(PairWeightsView, first=SLIDES[0]),
        service.answer,
        key="pair_weights",
        name="view",
        slides=[slide.to_json(PairWeightsView) for slide in SLIDES],
    )


menu.views("pair_weights", "Pair weights")
st.markdown(
    "On the sphere a loss only **weights pairs**: it attracts or repels them, more or less strongly. Each map shows "
    "one weight; x: similarity $S_{ap}$ of the positive pair, y: similarity $S_{an}$ of the negative pair.",
    help=glossary.explain("anchor, positive, negative", "clamp window"),
)
canvas()
first_loss.caption()
with st.expander("Method", icon=":material/function:"):
    st.markdown(
        "On the unit sphere a triplet loss is a function of three similarities $S_{xy}=x^\\top y = 1-d_{xy}^2/2$. Its "
        "gradient is a weighted sum of the other points, without the part along the point itself:"
    )
    st.latex(
        statements(
            r"\nabla_{\!a}L = w_{ap}\,(p-S_{ap}\,a)+w_{an}\,(n-S_{an}\,a),\qquad "
            r"w_{xy}=\frac{\partial L}{\partial S_{xy}},\qquad \frac{\partial L}{\partial d_{xy}}=-d_{xy}\,w_{xy}"
        )
    )
    st.markdown(
        "A negative derivative with respect to similarity attracts the pair; a positive one repels it. For "
        "derivatives with respect to distance the signs are opposite. The gradient of any loss gives such weights, "
        "including losses of pairs and proxies. Losses as pair weighting: Wang et al. 2019 (multi-similarity loss)."
    )
