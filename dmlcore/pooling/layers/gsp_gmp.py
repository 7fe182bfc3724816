"""Generalized sum pooling plus max pooling."""

from __future__ import annotations

from torch import Tensor

from dmlcore.pooling.base import maximum_shares, pooling
from dmlcore.pooling.layers.generalized_sum import GeneralizedSumPooling, check_memory


@pooling(
    "gsp_gmp",
    title="Generalized sum + maximum",
    latex=r"g_k=\sum_jp_jf_{jk}+\max_jf_{jk}",
    source="Gürbüz 2022, Sec. 5.3",
    rule=check_memory,
)
class GeneralizedSumMaxPooling(GeneralizedSumPooling):
    """Generalized sum pooling plus the maximum of each channel.

    `weights` is the average of the weights of generalized sum pooling and the share of channels with their maximum at
    each position.
    """

    averages = False

    def forward(self, features: Tensor) -> Tensor:
        """Pool features (B, C, H, W) to (B, C)."""
        pooled = super().forward(features)
        largest = features.amax((2, 3))
        self.weights = (self.weights + maximum_shares(features, largest)) / 2
        return pooled + largest
