"""Cross-dimensional weighting (CroW)."""

from __future__ import annotations

import torch
from torch import Tensor

from dmlcore.pooling.base import Pooling, normalise_shares, pooling

ETA = 1e-16


@pooling(
    "crow",
    title="Cross-dimensional weighting (CroW)",
    latex=r"g_k=b_k\,\frac1n\sum_j a_jf_{jk},\quad a=\sqrt{S/\lVert S\rVert_2},\ S_j=\sum_k[f_{jk}]_+,"
    r"\quad b_k=\log\frac{K\eta+\sum_l q_l}{\eta+q_k},\ q=\frac1n\sum_j\sigma(f_j)",
    source="Kalantidis, Mellina & Osindero, ECCVW 2016; q = mean sigmoid as in Gürbüz 2022",
)
class CrossDimensionalWeighting(Pooling):
    """Weighting of positions by their total response and of channels by their rarity, without learned parameters.

    The rarity of a channel is measured by q, its mean sigmoid response, instead of its share of non-zero responses as
    in the original paper, which has no gradient. `weights` holds the position weights a, normalised to sum 1, or zeros
    if no feature is positive.
    """

    def forward(self, features: Tensor) -> Tensor:
        """Pool features (B, C, H, W) to (B, C)."""
        self.check(features)
        local = features.flatten(2)
        S = local.relu().sum(1)
        positive = S > 0
        inside = S.where(positive, 1.0)  # avoid the infinite slope of the square root at 0
        length = torch.linalg.vector_norm(S, dim=1, keepdim=True).clamp(min=torch.finfo(S.dtype).tiny)
        a = (inside / length).sqrt().where(positive, 0.0)
        q = local.sigmoid().mean(-1)
        b = torch.log((q.shape[1] * ETA + q.sum(1, keepdim=True)) / (ETA + q))
        self.weights = normalise_shares(a)
        pooled: Tensor = b * (local @ a[..., None])[..., 0] / local.shape[2]
        return pooled
