"""Collage: one tile of four shows the class; which pooling learns to look at it?"""

import streamlit as st

from pages.pooling.collage import service as collage_service
from pages.pooling.collage.weight_maps import page as weight_maps_view
from pages.shared.widgets import menu
from pages.shared.widgets.study import panel as study_panel
from pages.shared.widgets.study.panel import Layout


def examples() -> str:
    """HTML of some collages."""
    with st.spinner("Putting collages together …"):
        return collage_service.examples()


LAYOUT = Layout(
    columns={"map_at_r": "test MAP@R", "recall_at_1": "R@1", "foreground": "weight on its tile"},
    scores="On alphabets that neither training nor validation has seen. Weight on its tile: the share of the pooling's "
    "weight on the tile that shows the class; averaging has 25 %.",
    curves="On the Greek alphabet, which training has not seen and which chooses the step.",
    examples=examples,
)

menu.views("collage", "Collage")
st.markdown(
    "Every image is four tiles: one shows a character of its class, three show letters that stand behind every "
    "class. Average pooling mixes them. A pooling that weighs its positions may learn, from class labels alone, which "
    "tile counts."
)
study_panel.show(weight_maps_view.STUDY, LAYOUT)
weight_maps_view.show()
study_panel.poolings("omniglot-collage-poolings")
study_panel.about(weight_maps_view.STUDY)
with st.expander("With photographs", icon=":material/photo_library:"):
    st.markdown(
        "Natural images need more than a laptop. The source puts CIFAR-100 together in this way and trains for 9,000 "
        "steps; 200 steps on a tenth of it taught nothing: every pooling ended at a test MAP@R of 0.9 %, and average "
        "pooling of the right tile alone at 3.4 %. The study is there for whoever has the time or a GPU:"
    )
    st.code("python -m dmlcore study collage", language="bash")
