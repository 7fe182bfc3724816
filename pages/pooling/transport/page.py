"""Transport: which pixels of a painted map generalized sum pooling selects, and how its problem is solved."""

import streamlit as st

from pages.pooling.transport import canvas as transport_canvas

st.title("Transport: which pixels enter the pooled vector", anchor=False)
st.markdown(
    "**Generalized sum pooling** moves a share μ of a map's mass to a few prototypes, as cheaply as it can: "
    "pixels near a prototype enter the pooled vector, the others stay out."
)
transport_canvas.show()
transport_canvas.explain()
