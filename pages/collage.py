"""Collage: one tile of four shows the class; which pooling learns to look at it?"""

import streamlit as st

from pages._ui import collage_examples, collage_maps, study_panel
from pages._ui.study_panel import Layout

LAYOUT = Layout(
    columns={"map_at_r": "test MAP@R", "recall_at_1": "R@1", "foreground": "weight on its tile"},
    scores="On sub-classes that neither training nor validation has seen. Weight on its tile: the share of the "
    "pooling's weight on the tile that shows the class; averaging has 25 %.",
    curves="On sub-classes that training has not seen. The dashed level is the best of **distilled**, average pooling "
    "of the foreground tile alone: the ceiling for a pooling that finds it.",
    examples=collage_examples.examples,
)

st.title("Collage", anchor=False)
st.markdown(
    "Every picture is four tiles: one shows the class, three show backgrounds that all classes share. Average pooling "
    "mixes them. A pooling that weighs its positions may learn, from class labels alone, which tile counts."
)
study_panel.show("collage", LAYOUT)
collage_maps.show()
study_panel.poolings("collage-poolings")
study_panel.about("collage")
