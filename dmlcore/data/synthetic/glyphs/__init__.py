"""Invented alphabets: characters composed of strokes, with random variations by writers."""
