"""Arrays -> figures: no files, no streamlit."""
