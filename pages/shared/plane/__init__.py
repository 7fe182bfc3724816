"""Plane of a triplet, used by the Fields, Failures and Errata pages: its scene, force field and numbers."""
