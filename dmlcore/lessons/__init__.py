"""Lessons: short interactive texts in Markdown; each question is answered with the state of a figure."""
