"""All else that imports streamlit: controls, url state, live views, components, routes."""
