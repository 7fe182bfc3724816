"""Charges: many points of several classes move as a triplet loss pulls and pushes them."""

import streamlit as st

from pages.losses.charges import canvas as charges_canvas

st.title("Charges in a medium of negative permittivity", anchor=False)
st.markdown(
    "Every point is an embedding, its colour and shape a class. As charges would in a medium of negative permittivity, "
    "**like attract and unlike repel**: drag a point, move a slider, and let the loss drive them."
)
charges_canvas.show()
