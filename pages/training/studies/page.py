"""Studies page: questions answered by many runs with equal budgets, for example which loss is best."""

import streamlit as st

from dmlcore.experiments import studies
from pages.shared.widgets import menu
from pages.shared.widgets.study.places import ELSEWHERE
from pages.training.studies import variants as variants_view

FIRST = "losses-omniglot"

known = [name for name in studies.names() if name not in ELSEWHERE and studies.read(name).shown]
asked = st.query_params.get("study")
with st.container(horizontal=True, vertical_alignment="center"):
    st.title("Studies", anchor=False, width="content")
    name = st.selectbox(
        "Study",
        known,
        index=known.index(asked if asked in known else FIRST),
        format_func=lambda name: studies.read(name).title,
        key="study",
        width=480,
        label_visibility="collapsed",
    )
st.markdown(
    "A study trains many variants with the same budget over several seeds. "
    "The results shown come with the app; you can run any study again."
)
if asked and asked not in studies.names():
    st.caption(":material/link_off: The study of the link does not exist. Choose one from the list.")
st.query_params["study"] = name
variants_view.show(name)
menu.link("claims", "Claims of the sources, with the verdicts of all studies")
with st.expander("Studies on other pages", icon=":material/open_in_new:"):
    for other, page in ELSEWHERE.items():
        menu.link(page, f"{studies.read(other).title}, on {menu.PAGES[page].title}")
