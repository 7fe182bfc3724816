"""Toys: small networks train before one's eyes, two losses side by side."""

import streamlit as st

from pages.losses.toys import canvas as toys_canvas

st.title("Toy trainings", anchor=False)
st.markdown(
    "A small network maps points of space to a plane, or a frozen one pictures to embeddings, and a loss tells which "
    "to bring together. Watch two losses, or two poolings, train on **the same data, seed and clock**; pause, scrub "
    "back, change a setting while it runs."
)
toys_canvas.show()
