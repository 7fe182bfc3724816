"""Triplet in the plane, as shown on the Fields, Failures and Errata pages: its scene, force field and numbers."""
