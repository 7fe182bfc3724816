"""The loop, and what it works with."""
