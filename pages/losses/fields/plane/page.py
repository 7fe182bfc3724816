"""Force fields: drag the three points, move the sliders, and see how a triplet loss pushes and pulls."""

import streamlit as st

from pages.losses.fields.plane import canvas as plane_canvas

st.title("Force fields of triplet losses", anchor=False)
st.markdown(
    "An **anchor** A pulls its **positive** P, of the same class, and pushes a **negative** N, of another. "
    "Drag a point or move a slider: colour is the loss the scanning point would have there, arrows the force on it."
)
plane_canvas.show()
