"""Server code that no page defines: routes, access control, WebSockets, static files, images and exports."""
