"""Sum of average and max pooling."""

from __future__ import annotations

from torch import Tensor

from dmlcore.pooling.base import Pooling, maximum_shares, pooling


@pooling(
    "gap_gmp",
    title="Average + maximum",
    latex=r"g_k=\frac1n\sum_j f_{jk}+\max_j f_{jk}",
    source="Kim, Kim, Cho & Kwak, CVPR 2020",
)
class AverageMaxPooling(Pooling):
    """Mean plus maximum of each channel.

    `weights` is the average of the uniform weights 1/n and the share of channels with their maximum at each position.
    """

    def forward(self, features: Tensor) -> Tensor:
        """Pool features (B, C, H, W) to (B, C)."""
        self.check(features)
        largest = features.amax((2, 3))
        won = maximum_shares(features, largest)
        self.weights = (won + 1 / won.shape[1]) / 2
        return features.mean((2, 3)) + largest
