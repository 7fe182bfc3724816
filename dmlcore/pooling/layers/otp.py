"""Optimal transport pooling (OTP, the optimal transport kernel embedding)."""

from __future__ import annotations

import math
from typing import Annotated

import torch
from torch import Tensor, nn

from dmlcore.catalogue import Slider
from dmlcore.pooling.base import Pooling, init_he_, pooling
from dmlcore.pooling.costs import prototype_costs


@pooling(
    "otp",
    title="Optimal transport (OTP)",
    latex=r"g=\Big[\sqrt m\sum_jT_{ij}f_j\Big]_{i=1}^m,\quad"
    r"T=\arg\min_{T\mathbf 1=\frac1m,\,T^\top\mathbf 1=\frac1n}\langle c,T\rangle+\frac1\varepsilon\sum T\log T",
    source="Mialon, Chen, d'Aspremont & Mairal, ICLR 2021; settings of Gürbüz 2022",
)
class OptimalTransportPooling(Pooling):
    """Sums of the features that entropic transport with uniform marginals assigns to each prototype, concatenated.

    A 1 x 1 convolution first reduces the features to `dimension` channels. The cost c is the unsquared distance in the
    unit ball, as in generalized sum pooling. out_features = clusters x dimension; Gürbüz 2022 compares 8 x 16 and 64 x
    128. The Sinkhorn sweeps run in the log domain. The last one normalises over the prototypes, so that the marginal of
    the features is exact. `weights` is None, because all positions have weight 1/n.
    """

    def __init__(
        self,
        channels: int,
        clusters: Annotated[int, Slider(1, 64, "m", "prototypes", step=1, above=0, most=4096)] = 8,
        dimension: Annotated[
            int, Slider(1, 128, "d", "channels of the reduced features", step=1, above=0, most=4096)
        ] = 16,
        epsilon: Annotated[
            float,
            Slider(0.1, 100.0, r"\varepsilon", "inverse temperature: large is hard assignment", log=True, above=0.0),
        ] = 2.0,
        sweeps: Annotated[int, Slider(1, 100, "K", "Sinkhorn sweeps", step=1, above=0)] = 10,
    ) -> None:
        super().__init__(channels, clusters * dimension)
        self.epsilon, self.sweeps = epsilon, sweeps
        self.reduction = init_he_(nn.Conv2d(channels, dimension, 1, bias=False))
        self.prototypes = nn.Parameter(nn.init.xavier_uniform_(torch.empty(clusters, dimension)))

    def plan(self, local: Tensor) -> Tensor:
        """Return the transport plan T (B, m, n) for reduced local features (B, n, dimension); columns sum to 1/n."""
        log_kernel = -self.epsilon * prototype_costs(local, self.prototypes)
        m, n = log_kernel.shape[1:]
        u = torch.zeros_like(log_kernel[..., :1])
        for _ in range(self.sweeps):
            v = -math.log(n) - (log_kernel + u).logsumexp(1, keepdim=True)
            u = -math.log(m) - (log_kernel + v).logsumexp(2, keepdim=True)
        return (log_kernel + u).softmax(1) / n

    def forward(self, features: Tensor) -> Tensor:
        """Pool features (B, C, H, W) to (B, clusters * dimension)."""
        self.check(features)
        local = self.reduction(features).flatten(2).mT
        pooled: Tensor = math.sqrt(len(self.prototypes)) * (self.plan(local) @ local).flatten(1)
        return pooled
