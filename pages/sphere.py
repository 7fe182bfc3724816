"""Circle and sphere: what a triplet loss looks like once the embeddings are normalised."""

import streamlit as st

from pages._ui import sphere_view

st.title("Circle and sphere", anchor=False)
st.markdown(
    "Normalised embeddings live on a sphere: drag A, P and N along it. **Colour** is the loss the scanning point would "
    "have there, **arrows** the part of the force that can move it; normalisation removes the radial rest."
)
sphere_view.show()
