"""Pooling layers, which map local features (B, C, H, W) to one vector per image, and the head for embeddings."""

from dmlcore.catalogue import load_plugins
from dmlcore.pooling.analysis.zero_shot_evaluation import zero_shot_evaluation
from dmlcore.pooling.base import (
    POOLINGS,
    EmbeddingHead,
    EmbeddingLayer,
    Pooling,
    PoolingInfo,
    at_least_float32,
    create,
    describe,
    names,
    pool,
)
from dmlcore.pooling.costs import clip_to_unit_ball, prototype_costs
from dmlcore.pooling.layers.generalized_sum import GeneralizedSumPooling
from dmlcore.pooling.transport import pooling_weights, selection, sweeps, transport
from dmlcore.pooling.zero_shot import ZeroShotPrediction, mixed, ridge

__all__ = [
    "POOLINGS",
    "EmbeddingHead",
    "EmbeddingLayer",
    "GeneralizedSumPooling",
    "Pooling",
    "PoolingInfo",
    "ZeroShotPrediction",
    "at_least_float32",
    "clip_to_unit_ball",
    "create",
    "describe",
    "mixed",
    "names",
    "pool",
    "pooling_weights",
    "prototype_costs",
    "ridge",
    "selection",
    "sweeps",
    "transport",
    "zero_shot_evaluation",
]


load_plugins()  # must come last, because plugins import this package
