"""Lessons: explorables of a few minutes as Markdown files, each question answered by the state of its figure."""
