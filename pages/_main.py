"""The router: a few lines, because it runs on every full rerun."""

from pathlib import Path

import streamlit as st

from pages.shared.widgets import menu

ICON = Path(__file__).resolve().parents[1] / "assets" / "icon.svg"

st.set_page_config(page_title="DML Lab", page_icon=str(ICON), layout="wide")
# Expanded: on a phone the menu is a drawer, and shares it with the form of Train.
st.navigation(menu.pages(), position="top", expanded=True).run()
