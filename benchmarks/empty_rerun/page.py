"""One slider and one number in a fragment: the minimum work of Streamlit for a moved slider."""

import streamlit as st


@st.fragment
def number() -> None:
    st.html(f'<div id="answer">{st.slider("s", 0, 1000, 500)}</div>')


number()
