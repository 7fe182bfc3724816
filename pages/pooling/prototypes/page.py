"""Prototypes: average pooling as a histogram over a few patches that stand for all others."""

from __future__ import annotations

import streamlit as st

from pages.pooling.prototypes import service, state
from pages.shared.widgets import menu, misread_link
from pages.shared.widgets.component import mount
from pages.shared.widgets.study import panel as study_panel
from pages.shared.widgets.study.panel import Layout
from pages.shared.words.formulas import statements

LAYOUT = Layout(
    columns={
        "map_at_r": "test MAP@R",
        "recall_at_1": "R@1",
        "overlap.histogram_intersection": "histogram intersection",
        "overlap.hull_iou": "hull IoU",
        "overlap.hull_separation": "hull separation",
        "overlap.bound_holds": "bound holds",
        "zero_shot.l2": "unseen classes, ℓ₂",
        "zero_shot.cosine": "unseen classes, cosine",
    },
    scores="On new images of the ten classes. Overlaps: of the classes as hulls of the 48 prototypes their local "
    "features lie at, weighed as the pooling does. Unseen classes: half of the class means predicted from prototype "
    "shares by a ridge fit on the other half, right where the own mean is the nearest of five, over all 252 splits; "
    "chance is 20 %.",
    curves="Validation is on new images of the same classes.",
)


@st.fragment
def canvas() -> None:
    """The plane of local features, one image, the controls."""
    view = misread_link.opened(state.PrototypesView)
    mount(
        "pooling/prototypes",
        view,
        service.answer,
        key="prototypes",
        name="view",
        sources=state.sources(view.source),
        limits=view.limits() | {"shown": state.MOST_SHOWN},
        columns=service.COLUMNS,
    )


menu.views("prototypes", "Prototypes: an average is a histogram")
st.markdown(
    "**Choose an image**: its patches are points of this plane, and averaging them (global average pooling, GAP) says "
    "little more than how many fall into the cell of each prototype."
)
with st.container(key="figure-prototypes"):
    canvas()
st.subheader("What is shown", anchor=False)
st.markdown(
    "Send each feature $x_j$ of an image to its nearest prototype $\\nu_i$ and let $p_i$ be the weight that arrives. "
    "The histogram's point $\\sum_i p_i\\nu_i$ stays close to the average, whatever the image:"
)
st.latex(
    statements(
        r"\Bigl\|\sum_i p_i\nu_i-\sum_j w_jx_j\Bigr\|_2\ \le\ \sum_j w_j\min_i\|x_j-\nu_i\|_2\ \le\ "
        r"\delta=\max_j\min_i\|x_j-\nu_i\|_2,\qquad w_j=\tfrac1n\ \text{for GAP}"
    )
)
st.caption(
    "The difference is the weighted mean of the steps from each feature to its prototype. The source (Gürbüz 2022, "
    "Prop. 4.2.1) prints a square on the left, which fails: one feature at (−1, 0) and one prototype at (1, 0) have "
    "δ = 2 and a squared error of 4. Features are divided by their largest norm. Prototypes: greedy k-centre on all "
    "features (Gonzalez 1985), so each one is a real patch. A class uses the prototypes whose mean share exceeds τ/m; "
    "its hull is theirs. A point in two hulls can be a combination of either class."
)
study_panel.show("prototypes", LAYOUT)
study_panel.about("prototypes")
