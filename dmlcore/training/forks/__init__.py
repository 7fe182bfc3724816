"""Forks: runs that start from a checkpoint of another run with changed settings or a changed training split."""
