"""Collage page: images composed of four tiles, one of which shows the class, and the weight that each pooling gives
them.
"""

from functools import partial

import streamlit as st

from pages.pooling.collage import canvas as canvas_view
from pages.pooling.collage import state
from pages.pooling.collage import weight_maps as weight_maps_view
from pages.shared.widgets import menu
from pages.shared.widgets.study import panel as study_panel
from pages.shared.widgets.study.panel import Layout
from pages.shared.words import glossary


def examples(data_set: str) -> str:
    """Return HTML with example collages; show a spinner while they are made."""
    with st.spinner("Building collages …"):
        return canvas_view.examples(data_set)


def layout(study: str) -> Layout:
    """Return the layout of the study panel: titles of the score columns, captions, and example images."""
    return Layout(
        columns={"map_at_r": "test MAP@R", "recall_at_1": "R@1", "foreground": "weight on the class tile"},
        scores="Scores are measured on alphabets that are in neither the training nor the validation split. Weight on "
        "the class tile: share of the pooling's weight on the tile that shows the class; average pooling has 25 %.",
        curves="Validation uses alphabets that are not in the training split; it selects the checkpoint.",
        examples=partial(examples, state.data_of(study)),
    )


OTHERS = {"omniglot": "glyphs", "glyphs": "omniglot"}
TITLES = {"omniglot": "Use Omniglot characters", "glyphs": "Use invented characters (no download)"}

menu.views("collage", "Collage: where each pooling looks")
st.markdown(
    "**Compare the rows.** In each image one tile shows a character of the class (dashed); three show distractor "
    "letters. Light marks where a pooling looks; it learned this from class labels alone.",
    help=glossary.explain("GAP, GSP"),
)
tiles = state.tiles(st.query_params.to_dict())
study = state.STUDIES[tiles]
weight_maps_view.show(study)
menu.link("collage", TITLES[OTHERS[tiles]], {"tiles": OTHERS[tiles]}, icon="swap_horiz")
answer = st.container()
with st.expander("Study: GAP and GSP on collages", icon=":material/science:"):
    study_panel.show(study, layout(study), head=answer)
    study_panel.about(study)
with st.expander("Study: all poolings", icon=":material/bar_chart:"):
    study_panel.poolings("omniglot-collage-poolings")
with st.expander("Study: photographs", icon=":material/photo_library:"):
    st.markdown(
        "Natural images need more than a laptop. The source builds collages from CIFAR-100 and trains for 9,000 steps. "
        "200 steps on a tenth of the data were not enough: every pooling reached a test MAP@R of 0.9 %, and average "
        "pooling of the right tile alone 3.4 %. With enough time or a GPU, run the study:"
    )
    st.code("python -m dmlcore study collage", language="bash")
