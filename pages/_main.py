"""The router: a few lines, because it runs on every full rerun."""

from pathlib import Path

import streamlit as st

ICON = Path(__file__).resolve().parents[1] / "assets" / "icon.svg"

st.set_page_config(page_title="DML Lab", page_icon=str(ICON), layout="wide")
st.navigation(
    {
        "Geometry": [
            st.Page("fields.py", title="Fields", icon=":material/explore:", default=True),
            st.Page("compare.py", title="Compare", icon=":material/compare:"),
            st.Page("sphere.py", title="Circle and sphere", icon=":material/public:"),
            st.Page("charges.py", title="Charges", icon=":material/bolt:"),
            st.Page("microscope.py", title="Loss microscope", icon=":material/biotech:"),
            st.Page("truth.py", title="Truth", icon=":material/fact_check:"),
        ],
        "Pooling": [
            st.Page("transport.py", title="Transport", icon=":material/conversion_path:"),
            st.Page("gap_or_gsp.py", title="GAP or GSP", icon=":material/balance:"),
            st.Page("prototypes.py", title="Prototypes", icon=":material/hive:"),
            st.Page("collage.py", title="Collage", icon=":material/dashboard:"),
        ],
        "Training": [
            st.Page("toys.py", title="Toys", icon=":material/toys:"),
            st.Page("data.py", title="Data", icon=":material/folder_open:"),
            st.Page("train.py", title="Train", icon=":material/play_circle:"),
            st.Page("runs.py", title="Runs", icon=":material/monitoring:"),
            st.Page("fork.py", title="Fork", icon=":material/fork_right:"),
            st.Page("studies.py", title="Studies", icon=":material/leaderboard:"),
        ],
        "Inspection": [
            st.Page("gallery.py", title="Gallery", icon=":material/grid_view:"),
            st.Page("failure.py", title="Forces of a failure", icon=":material/query_stats:"),
            st.Page("maps.py", title="Map", icon=":material/bubble_chart:"),
            st.Page("differences.py", title="Differences", icon=":material/compare_arrows:"),
            st.Page("confusions.py", title="Confusions", icon=":material/grid_on:"),
            st.Page("published.py", title="Published", icon=":material/menu_book:"),
        ],
    },
    position="top",
    expanded=True,  # on a phone the menu is a drawer, and shares it with the form of Train
).run()
