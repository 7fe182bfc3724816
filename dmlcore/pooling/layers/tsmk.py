"""Norm-weighted sum of smoothed features (HOW, trained for selective match kernels)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from dmlcore.pooling.base import Pooling, normalise_shares, pooling


@pooling(
    "tsmk",
    title="Norm attention (T-SMK, HOW)",
    latex=r"g=\frac1n\sum_j\lVert f_j\rVert\,\mathrm{avg}_{3\times3}(f)_j",
    source="Tolias, Jenicek & Chum, ECCV 2020",
)
class NormAttention(Pooling):
    """Features averaged over 3 x 3 neighbourhoods, weighted by the norm of the centre feature (without gradient).

    At the borders the average is over the existing neighbours. `weights` holds the normalised norms, which are the
    shares of the smoothed features; all 0 if all features are 0.
    """

    positional = True
    stops_gradient = True

    def forward(self, features: Tensor) -> Tensor:
        """Pool features (B, C, H, W) to (B, C)."""
        self.check(features)
        length = torch.linalg.vector_norm(features.detach(), dim=1).flatten(1)
        smooth = F.avg_pool2d(features, 3, stride=1, padding=1, count_include_pad=False).flatten(2)
        self.weights = normalise_shares(length)
        pooled: Tensor = (smooth @ length[..., None])[..., 0] / length.shape[1]
        return pooled
