"""Figures built from arrays, without access to files and without streamlit."""
