"""Pair weights: for two losses, the weight of each pair of a triplet as a map over similarities."""

from __future__ import annotations

import streamlit as st

from pages.losses.fields.pair_weights import service
from pages.losses.fields.pair_weights.state import SLIDES, PairWeightsView
from pages.shared.widgets import first_loss, menu, misread_link
from pages.shared.widgets.component import mount
from pages.shared.words.formulas import statements


@st.fragment
def canvas() -> None:
    """Mount two maps of pair weights, their sliders and the triplet under the pointer."""
    mount(
        "losses/fields/pair_weights",
        misread_link.opened(PairWeightsView, first=SLIDES[0]),
        service.answer,
        key="pair_weights",
        name="view",
        slides=[slide.to_json(PairWeightsView) for slide in SLIDES],
    )


menu.views("pair_weights", "Pair weights")
st.markdown(
    "All that a loss can do to normalised embeddings is to **weigh pairs**: attract some, repel others, more or less. "
    "Each map shows one such weight for every similarity of the pair (across) and of its rival (up)."
)
canvas()
first_loss.caption()
st.subheader("What the maps show", anchor=False)
st.markdown(
    "On the unit sphere a triplet loss is a function of three similarities $S_{xy}=x^\\top y = 1-d_{xy}^2/2$, and its "
    "gradient is a weighted sum of the other points, less its part along the point itself:"
)
st.latex(
    statements(
        r"\nabla_{\!a}L = w_{ap}\,(p-S_{ap}\,a)+w_{an}\,(n-S_{an}\,a),\qquad w_{xy}=\frac{\partial L}{\partial S_{xy}},"
        r"\qquad \frac{\partial L}{\partial d_{xy}}=-d_{xy}\,w_{xy}"
    )
)
st.caption(
    "A negative weight by similarity attracts the pair, a positive one repels it; by distance the signs are opposite. "
    "Solid: loss = 0. Dashed: upper clamp. Hatched: no three unit vectors have these similarities. The same weights "
    "are read off the gradient of any loss, of pairs and proxies too. "
    "View of a loss as pair weighting: Wang et al. 2019 (multi-similarity loss)."
)
