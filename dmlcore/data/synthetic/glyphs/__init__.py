"""Invented alphabets: characters as strokes, and random variations by writers."""
