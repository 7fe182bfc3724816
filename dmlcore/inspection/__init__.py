"""Analysis of a trained embedding: neighbours, failures, confusions and duplicates, as functions of embeddings and
runs.
"""
