"""Influence of training samples on failures: how much each sample changes a query's margin during training."""
