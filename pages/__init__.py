"""Streamlit pages of the app; mathematics belongs in `dmlcore`."""
