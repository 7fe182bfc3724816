"""Maps of embeddings in the plane: settings, computation, quality, and their change over a training run."""
