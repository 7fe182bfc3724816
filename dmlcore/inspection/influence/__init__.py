"""Influence of training samples on retrieval failures: the change in the failure's margin due to each sample."""
