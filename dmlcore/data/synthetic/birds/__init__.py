"""Drawn bird species."""
