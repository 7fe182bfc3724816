"""Circle and sphere: what a triplet loss looks like once the embeddings are normalised."""

import streamlit as st

from pages.losses.fields.sphere import canvas as sphere_canvas

st.title("Circle and sphere", anchor=False)
st.markdown(
    "Normalised embeddings live on a sphere. Drag an **anchor** A, its **positive** P and a **negative** N along it: "
    "colour is the loss the scanning point would have there, arrows the part of its force that can move it. "
    "The radial rest is what normalisation removes."
)
sphere_canvas.show()
