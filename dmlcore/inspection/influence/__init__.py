"""Influence of training samples on failures: changes of a query's margin that each sample causes in training."""
