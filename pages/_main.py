"""Entry script of the app, which selects and runs a page. It is short because every full rerun executes it."""

from pathlib import Path

import pandas  # noqa: F401  (before all others, see _server._warm_up)
import streamlit as st

from pages.shared.server.measured import rerun
from pages.shared.server.turns import turn
from pages.shared.widgets import about, machines, menu

ICON = str(Path(__file__).resolve().parents[1] / "assets" / "icon.svg")

# Set the icon before building the menu; otherwise the browser requests it from an external server.
st.set_page_config(page_icon=ICON, layout="wide", menu_items={"About": about.text()})
st.logo(ICON, size="large")
page = menu.shown()
st.set_page_config(page_title=menu.title_of(page))
machines.sidebar()
with rerun(menu.address_of(page)), turn():
    page.run()
