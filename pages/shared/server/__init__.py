"""Routes, guard, sockets, static files, images and exports; never streamlit's pages."""
