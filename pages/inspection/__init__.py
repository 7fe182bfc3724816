"""Inspection: pages that show what a trained network knows and confuses. All of them show the run chosen once."""
