"""Scores of embeddings: retrieval with exact nearest-neighbour search, scores per class, and clustering."""

from dmlcore.metrics.clustering import ClusteringScores, clustering, nmi, pairwise_f1
from dmlcore.metrics.nearest_neighbours import nearest
from dmlcore.metrics.reranking import Reranking, rerank
from dmlcore.metrics.retrieval import ClassScores, RetrievalScores, per_class, retrieval
from dmlcore.metrics.scores import SCORES

__all__ = [
    "SCORES",
    "ClassScores",
    "ClusteringScores",
    "Reranking",
    "RetrievalScores",
    "clustering",
    "nearest",
    "nmi",
    "pairwise_f1",
    "per_class",
    "rerank",
    "retrieval",
]
