"""Embedding sets: vectors that the user computed elsewhere, with labels, images and metadata, stored as a data set."""
