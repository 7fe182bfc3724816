"""GAP vs GSP page: two networks trained on the same bags of tokens, with average pooling and with a learned gate."""

from __future__ import annotations

import streamlit as st

from dmlcore.data.synthetic import tokens
from pages.pooling.gap_vs_gsp import service, state
from pages.shared.state.untrusted import bounded
from pages.shared.widgets import menu
from pages.shared.widgets.live_component import mount_timeline, opened
from pages.shared.widgets.study import panel as study_panel
from pages.shared.widgets.study.panel import Layout
from pages.shared.words import glossary

LAYOUT = Layout(
    columns={
        "map_at_r": "test MAP@R",
        "recall_at_1": "R@1",
        "overlap.shared_weight": "weight on shared tokens",
        "overlap.histogram_intersection": "histogram intersection",
        "overlap.hull_iou": "hull IoU",
    },
    scores="Scores are measured on bags that were not trained on. A plain average puts about half of its weight on "
    "shared tokens. Histogram intersection and hull IoU are means over pairs of classes; lower means better separated.",
    curves="GSP averages until its prototypes are placed; its best checkpoint is chosen from later steps.",
)


@st.fragment
def canvas() -> None:
    """Mount both training runs described by the URL, with controls and curves."""
    study = opened(state.PoolingStudy, first=state.PRESETS[0])
    chosen = int(bounded(st.query_params.get("class"), 0, tokens.CLASSES, 0))
    mount_timeline(
        "pooling/gap_vs_gsp",
        study,
        service.TIMELINE,
        key="gap_vs_gsp",
        chosen=chosen - 1 if chosen else None,
        options=state.options(),
        idle=not st.query_params or st.query_params.get("play") == "1",
    )


menu.views("gap_vs_gsp", "GAP vs GSP: can the gate be learned?")
st.markdown(
    "**Watch the diamonds S1–S4.** All classes share these tokens, and half of every bag consists of them. The average "
    "(GAP) has to keep them. Can a gate with learned prototypes (GSP) leave them out?",
    help=glossary.explain("GAP, GSP", "prototype"),
)
with st.container(key="figure-gap_vs_gsp"):
    canvas()
answer = st.container()
with st.expander("Study: four classes", icon=":material/science:"):
    study_panel.show("tokens-few", LAYOUT, head=answer)
with st.expander("Study: sixteen classes, as in the source", icon=":material/apps:"):
    study_panel.show("tokens", LAYOUT)
    study_panel.show("tokens-epsilon", LAYOUT)
    study_panel.about("tokens")
with st.expander("Study: settings that the source does not report", icon=":material/tune:"):
    study_panel.show("tokens-sweep", LAYOUT)
