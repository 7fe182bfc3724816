"""NetVLAD, which pools residuals to learned cluster centres."""

from __future__ import annotations

from typing import Annotated

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dmlcore.catalogue import Slider
from dmlcore.pooling.base import Pooling, init_he_, pooling


@pooling(
    "netvlad",
    title="Cluster residuals (NetVLAD)",
    latex=r"g=\Big[\frac{r_i}{\lVert r_i\rVert}\Big]_{i=1}^m,\quad"
    r"r_i=\sum_j\mathrm{softmax}_i(w_i^\top f_j+b_i)\,(f_j-v_i)",
    source="Arandjelović, Gronat, Torii, Pajdla & Sivic, CVPR 2016",
)
class NetVLAD(Pooling):
    """Summed residuals of the features assigned to each cluster, normalised per cluster and concatenated.

    A 1 x 1 convolution first reduces the features to `dimension` channels. out_features = clusters x dimension; Gürbüz
    2022 compares 8 x 16 and 64 x 128. `weights` is None, because each cluster has its own weights.
    """

    def __init__(
        self,
        channels: int,
        clusters: Annotated[int, Slider(1, 64, "m", "clusters", step=1, above=0, most=4096)] = 8,
        dimension: Annotated[
            int, Slider(1, 128, "d", "channels of the reduced features", step=1, above=0, most=4096)
        ] = 16,
    ) -> None:
        super().__init__(channels, clusters * dimension)
        self.reduction = init_he_(nn.Conv2d(channels, dimension, 1, bias=False))
        self.assignment = init_he_(nn.Conv2d(dimension, clusters, 1))
        self.centers = nn.Parameter(nn.init.xavier_uniform_(torch.empty(clusters, dimension)))

    def forward(self, features: Tensor) -> Tensor:
        """Pool features (B, C, H, W) to (B, clusters * dimension)."""
        self.check(features)
        local = self.reduction(features)
        a = self.assignment(local).flatten(2).softmax(1)  # (B, m, n)
        residuals = a @ local.flatten(2).mT - a.sum(-1, keepdim=True) * self.centers
        return F.normalize(residuals, dim=-1).flatten(1)
