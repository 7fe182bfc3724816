"""Histories that a page plays, scrubs and forks; computed and cached in Python, sent step by step."""
