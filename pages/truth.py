"""Truth: what a thesis prints beside what holds, each difference to be seen; and a reference of every loss."""

import streamlit as st

from pages._ui import truth

with st.container(horizontal=True, vertical_alignment="center", gap="large"):
    st.title("What is printed, what is true", anchor=False, width="content")
    part = truth.part()
truth.show(part)
