"""Figures and charts built from arrays, without access to files or Streamlit."""
