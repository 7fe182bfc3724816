"""Deep metric learning: loss geometry, training, retrieval metrics, projections."""
