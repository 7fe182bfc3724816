"""Invented alphabets: stroke programs and the hands that write them."""
