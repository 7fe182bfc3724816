"""GAP or GSP: the same bags of tokens pooled by the plain average and by a learned gate, trained side by side."""

from __future__ import annotations

import streamlit as st

from dmlcore.data.synthetic import tokens
from pages.pooling.gap_vs_gsp import service, state
from pages.shared.state.untrusted import bounded
from pages.shared.widgets import menu, misread_link
from pages.shared.widgets.component import mount_timeline
from pages.shared.widgets.study import panel as study_panel
from pages.shared.widgets.study.panel import Layout

LAYOUT = Layout(
    columns={
        "map_at_r": "test MAP@R",
        "recall_at_1": "R@1",
        "overlap.shared_weight": "weight on shared tokens",
        "overlap.histogram_intersection": "histogram intersection",
        "overlap.hull_iou": "hull IoU",
    },
    scores="On bags that were not trained on. The weight on shared tokens is about half for a plain average; histogram "
    "intersection and hull IoU are means over pairs of classes, the lower the more apart.",
    curves="GSP averages until its prototypes are placed; only later weights count as its best.",
)


@st.fragment
def canvas() -> None:
    """Both training runs of the link, with controls and curves."""
    study = misread_link.opened(state.PoolingStudy, first=state.PRESETS[0])
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


menu.views("gap_vs_gsp", "GAP or GSP: can it be learned?")
st.markdown(
    "**Watch the diamonds S1–S4**, tokens that all classes share and that fill half of every bag: the average (GAP) "
    "can only keep them; can a gate with learned prototypes (GSP) leave them out?"
)
with st.container(key="figure-gap_or_gsp"):
    canvas()
study_panel.show("tokens-few", LAYOUT)
with st.expander("Sixteen classes, as the source has them", icon=":material/apps:"):
    study_panel.show("tokens", LAYOUT)
    study_panel.show("tokens-epsilon", LAYOUT)
study_panel.about("tokens")
with st.expander("The settings that the source leaves open, one by one", icon=":material/tune:"):
    study_panel.show("tokens-sweep", LAYOUT)
