"""Poolings seen: what each selects, and what that is worth."""
