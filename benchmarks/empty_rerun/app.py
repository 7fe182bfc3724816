"""Baseline of benchmarks/fields.py: the app's server with a page that contains only one slider and one number."""

import sys
from pathlib import Path

import streamlit as st

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pages._server import lifespan

app = st.App(Path(__file__).with_name("page.py"), lifespan=lifespan)
