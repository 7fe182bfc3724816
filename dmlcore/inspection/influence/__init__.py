"""Influence of training samples on failures: the change of a query's margin in each training step."""
