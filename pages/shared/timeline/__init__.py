"""Histories (sequences of computed steps) that a page plays, scrubs and forks; computed and cached in Python."""
