"""Global max pooling."""

from __future__ import annotations

from torch import Tensor

from dmlcore.pooling.base import Pooling, maximum_shares, pooling


@pooling("gmp", title="Maximum", latex=r"g_k=\max_j f_{jk}", source="Oquab, Bottou, Laptev & Sivic, CVPR 2015")
class GlobalMaxPooling(Pooling):
    """Maximum of each channel.

    `weights` holds the share of channels with their maximum at each position; positions with equal maxima share a
    channel.
    """

    def forward(self, features: Tensor) -> Tensor:
        """Pool features (B, C, H, W) to (B, C)."""
        self.check(features)
        pooled = features.amax((2, 3))
        self.weights = maximum_shares(features, pooled)
        return pooled
