"""Compare losses: two to four side by side over the same points, their difference, and whether they are one loss."""

import streamlit as st

from pages.losses.fields.compare import canvas as compare_canvas

st.title("Are these the same loss?", anchor=False)
st.markdown(
    "Two losses, one triplet: an **anchor** A pulls its **positive** P and pushes a **negative** N. Drag a point in "
    "any plane and it moves in all; the last map is what is left when one loss is subtracted from the other."
)
compare_canvas.show()
