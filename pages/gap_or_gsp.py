"""GAP or GSP: the same bags of tokens pooled by the plain average and by a learned gate, trained side by side."""

import streamlit as st

from pages._ui import gap_or_gsp_view

st.title("GAP or GSP", anchor=False)
st.markdown(
    "Sixteen classes have four tokens each; four more tokens belong to **all** classes and fill about half of a bag. "
    "A bag's embedding is pooled from its 50 tokens. The plain average (GAP) weighs all of them alike; generalized sum "
    "pooling (GSP) lets a share μ pass, those nearest to its learned prototypes. **Can it learn to leave the shared "
    "tokens out?**"
)
gap_or_gsp_view.show()
gap_or_gsp_view.show_study()
