"""Histories that a page plays, scrubs and forks: kept in Python, sent step by step."""
