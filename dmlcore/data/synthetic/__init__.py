"""Data sets that are drawn: no download."""
