"""New run: choose data, settings and start."""
