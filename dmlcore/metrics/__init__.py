"""Retrieval scores and the exact neighbour search under them: arrays in, frozen dataclass out."""

from dmlcore.metrics.neighbours import nearest
from dmlcore.metrics.retrieval import RetrievalScores, retrieval

__all__ = ["RetrievalScores", "nearest", "retrieval"]
