"""Prototypes page: average pooling of an image as a histogram over a few representative patches."""

from __future__ import annotations

import streamlit as st

from pages.pooling.prototypes import service, state
from pages.shared.widgets import menu
from pages.shared.widgets.live_component import mount, opened
from pages.shared.widgets.study import panel as study_panel
from pages.shared.widgets.study.panel import Layout
from pages.shared.words import glossary
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
    scores="Scores are measured on new images of the ten classes. A class is represented by the convex hull of the "
    "prototypes (of 48) nearest to its local features; overlaps compare these hulls, weighted as the pooling "
    "weights them. Unseen classes: a ridge regression on half of the class means predicts the other half from "
    "prototype shares; a prediction counts as correct if the true mean is the nearest of five. Mean over all 252 "
    "splits; chance is 20 %.",
    curves="Validation uses new images of the same classes.",
)
ON_BIRDS = Layout(
    columns=LAYOUT.columns,
    scores="Scores are measured on 42 species that are in neither training nor validation. Overlaps compare the hulls "
    "of the prototypes (of 48) nearest to the local features of a species; hull IoU exists in 2-D only. Unseen "
    "classes: as above, but for 1,000 random halves of the species; chance is 4.76 %.",
    curves="Validation uses other species than training.",
)


@st.fragment
def canvas() -> None:
    """Mount the plot of the local features, with the chosen image and the controls."""
    view = opened(state.PrototypesView)
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
    "**Choose an image.** Its patches are points of this plane. Average pooling (GAP) ≈ the histogram of these points "
    "over the prototypes.",
    help=glossary.explain("prototype", "GAP, GSP"),
)
with st.container(key="figure-prototypes"):
    canvas()
with st.expander("Method", icon=":material/function:"):
    st.markdown(
        "Assign each feature $x_j$ of an image to its nearest prototype $\\nu_i$; $p_i$ is the weight assigned to it. "
        "For every image the point $\\sum_i p_i\\nu_i$ of the histogram is close to the average:"
    )
    st.latex(
        statements(
            r"\Bigl\|\sum_i p_i\nu_i-\sum_j w_jx_j\Bigr\|_2\ \le\ \sum_j w_j\min_i\|x_j-\nu_i\|_2\ \le\ "
            r"\delta=\max_j\min_i\|x_j-\nu_i\|_2,\qquad w_j=\tfrac1n\ \text{for GAP}"
        )
    )
    st.caption(
        "The difference is the weighted mean of the vectors from each feature to its prototype. The source (Gürbüz "
        "2022, Prop. 4.2.1) prints a square on the left. That bound fails: one feature at (−1, 0) and one prototype at "
        "(1, 0) have δ = 2 and a squared error of 4. Features are divided by their largest norm. Prototypes are chosen "
        "by greedy k-centre on all features (Gonzalez 1985), so each one is a real patch. A class uses the prototypes "
        "whose mean share exceeds τ/m; its hull is their convex hull. A point in two hulls can be a combination of "
        "either class."
    )
answer = st.container()
with st.expander("Study: prototypes learned on CIFAR-10", icon=":material/science:"):
    study_panel.show("prototypes", LAYOUT, head=answer)
    study_panel.about("prototypes")
with st.expander("Study: prototypes on birds, unseen species", icon=":material/science:"):
    study_panel.show("prototypes-birds", ON_BIRDS)
    study_panel.about("prototypes-birds")
