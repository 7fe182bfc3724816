"""From local features (B, C, H, W) to one vector (B, C)."""

from dmlcore.pooling.generalized_sum import GeneralizedSumPooling, lip, prototype_costs
from dmlcore.pooling.transport import pooling_weights, selection, sweeps, transport
from dmlcore.pooling.zero_shot import ZeroShotPrediction, mixed, ridge
from dmlcore.pooling.zero_shot_evaluation import zero_shot_evaluation

__all__ = [
    "GeneralizedSumPooling",
    "ZeroShotPrediction",
    "lip",
    "mixed",
    "pooling_weights",
    "prototype_costs",
    "ridge",
    "selection",
    "sweeps",
    "transport",
    "zero_shot_evaluation",
]
