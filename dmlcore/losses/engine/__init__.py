"""Shared parts of all losses: registration decorators, base classes, and tables of pairs and triplets."""
