"""Collage: one tile of four shows the class; which pooling learns to look at it?"""

import streamlit as st

from pages._ui import collage_maps, collage_study

st.title("Collage", anchor=False)
st.markdown(
    "Every picture is four tiles: one shows the class, three show backgrounds that all classes share. Average pooling "
    "mixes them. A pooling that weighs its positions may learn, from class labels alone, which tile counts."
)
collage_study.show("collage")
collage_maps.show()
collage_study.poolings("collage-poolings")
collage_study.about("collage")
