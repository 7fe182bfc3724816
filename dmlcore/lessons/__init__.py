"""Lessons: short interactive texts in Markdown. Answers to their questions are judged from the state of a figure."""
