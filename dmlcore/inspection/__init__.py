"""What an embedding knows and what it confuses: pure functions of embeddings, labels and runs."""
