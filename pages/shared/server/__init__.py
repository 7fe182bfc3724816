"""Routes, access control, WebSockets, static files, images and exports of the server; no Streamlit pages."""
