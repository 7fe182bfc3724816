"""Triplet in the plane, as shown on the Fields, Failures and Errata pages: its points, the force field and the numbers
displayed next to it.
"""
