"""Collage: one tile of four shows the class; which pooling learns to look at it?"""

from functools import partial

import streamlit as st

from pages.pooling.collage import service as collage_service
from pages.pooling.collage import state
from pages.pooling.collage import weight_maps as weight_maps_view
from pages.shared.widgets import menu
from pages.shared.widgets.study import panel as study_panel
from pages.shared.widgets.study.panel import Layout


def examples(data_set: str) -> str:
    """HTML of some collages."""
    with st.spinner("Putting collages together …"):
        return collage_service.examples(data_set)


def layout(study: str) -> Layout:
    """What is said of a study beside its numbers."""
    return Layout(
        columns={"map_at_r": "test MAP@R", "recall_at_1": "R@1", "foreground": "weight on its tile"},
        scores="On alphabets that neither training nor validation has seen. Weight on its tile: the share of the "
        "pooling's weight on the tile that shows the class; averaging has 25 %.",
        curves="On alphabets that training has not seen, which choose the step.",
        examples=partial(examples, state.data_of(study)),
    )


OTHERS = {"omniglot": "glyphs", "glyphs": "omniglot"}
TITLES = {"omniglot": "With characters of Omniglot", "glyphs": "With invented characters, without a download"}

menu.views("collage", "Collage: where it looks on pictures")
st.markdown(
    "**Compare the rows**: one tile of each image shows a character of its class (dashed), three show distractor "
    "letters. Light is where a pooling looks, learned from class labels alone."
)
tiles = state.tiles(st.query_params.to_dict())
study = state.STUDIES[tiles]
weight_maps_view.show(study)
study_panel.show(study, layout(study))
menu.link("collage", TITLES[OTHERS[tiles]], {"tiles": OTHERS[tiles]}, icon="swap_horiz")
study_panel.poolings("omniglot-collage-poolings")
study_panel.about(study)
with st.expander("With photographs", icon=":material/photo_library:"):
    st.markdown(
        "Natural images need more than a laptop. The source puts CIFAR-100 together in this way and trains for 9,000 "
        "steps; 200 steps on a tenth of it taught nothing: every pooling ended at a test MAP@R of 0.9 %, and average "
        "pooling of the right tile alone at 3.4 %. The study is there for whoever has the time or a GPU:"
    )
    st.code("python -m dmlcore study collage", language="bash")
