"""Readers of data sets, one per official layout."""
