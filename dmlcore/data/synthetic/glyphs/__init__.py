"""Invented alphabets: stroke programs of characters, and writers that vary them."""
