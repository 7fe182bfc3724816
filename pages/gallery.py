"""Placeholder until its engineer commits it."""

import streamlit as st

st.title("gallery")
