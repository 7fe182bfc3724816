"""Charges: many points of several classes move as a triplet loss pulls and pushes them."""

import streamlit as st

from pages._ui import charges_view

st.title("Charges in a medium of negative permittivity", anchor=False)
st.markdown(
    "Every point is an embedding, colour and shape its class. As charges would in a medium of negative permittivity, "
    "**like attract and unlike repel**, by the forces of the loss, summed over all triplets. "
    "Drag a point or move a slider, then let them run."
)
charges_view.show()
