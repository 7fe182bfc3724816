"""Scores of embeddings: retrieval with exact nearest-neighbour search, clustering, verification and rejection."""

from dmlcore.metrics.clustering import ClusteringScores, clustering, nmi, pairwise_f1
from dmlcore.metrics.consistency import ClassRates, Opis, Transfer, class_rates, opis, transfer
from dmlcore.metrics.nearest_neighbours import nearest
from dmlcore.metrics.rejection import RejectionScores, rejection
from dmlcore.metrics.reranking import Reranking, rerank
from dmlcore.metrics.retrieval import ClassScores, RetrievalScores, per_class, retrieval
from dmlcore.metrics.scores import SCORES
from dmlcore.metrics.verification import PairCurve, Verification, verification

__all__ = [
    "SCORES",
    "ClassRates",
    "ClassScores",
    "ClusteringScores",
    "Opis",
    "PairCurve",
    "RejectionScores",
    "Reranking",
    "RetrievalScores",
    "Transfer",
    "Verification",
    "class_rates",
    "clustering",
    "nearest",
    "nmi",
    "opis",
    "pairwise_f1",
    "per_class",
    "rejection",
    "rerank",
    "retrieval",
    "transfer",
    "verification",
]
