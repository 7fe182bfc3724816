"""Shared parts of all losses: decorators, base modules, and tables of pairs and triplets."""
