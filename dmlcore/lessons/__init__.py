"""Lessons: short explorables in Markdown, whose questions are answered by the state of their figures."""
