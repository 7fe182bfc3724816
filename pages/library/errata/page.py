"""Truth: what a thesis prints beside what holds, each difference to be seen; and a reference of every loss."""

import streamlit as st

from pages.library.errata import view as errata_view

with st.container(horizontal=True, vertical_alignment="center", gap="large"):
    st.title("What is printed, what is true", anchor=False, width="content")
    part = errata_view.part()
errata_view.show(part)
