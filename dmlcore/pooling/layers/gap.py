"""Global average pooling."""

from __future__ import annotations

from torch import Tensor

from dmlcore.pooling.base import Pooling, pooling


@pooling("gap", title="Average", latex=r"g=\frac1n\sum_j f_j", source="Lin, Chen & Yan, ICLR 2014")
class GlobalAveragePooling(Pooling):
    """Mean of the local features; each position has weight 1/n."""

    averages = True

    def forward(self, features: Tensor) -> Tensor:
        """Pool features (B, C, H, W) to (B, C)."""
        self.check(features)
        n = features.shape[2] * features.shape[3]
        self.weights = features.new_full((features.shape[0], n), 1 / n)
        return features.mean((2, 3))
