"""Experiments of several runs: studies, protocols, searches, recovery after a crash, and the example run."""
