"""Server code without Streamlit pages: routes, access control, WebSockets, static files, images and exports."""
