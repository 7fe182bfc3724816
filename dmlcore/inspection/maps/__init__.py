"""Embeddings in the plane: settings, maps, their quality, how they form over a training run."""
