"""Generalized-mean pooling (GeM)."""

from __future__ import annotations

import math
from typing import Annotated

import torch
from torch import Tensor, nn

from dmlcore.catalogue import Slider
from dmlcore.pooling.base import Pooling, pooling

SMALLEST = 1e-6  # smaller features are raised to this value


@pooling(
    "gem",
    title="Generalized mean (GeM)",
    latex=r"g_k=\Big(\frac1n\sum_j\max(f_{jk},10^{-6})^p\Big)^{1/p}",
    source="Radenović, Tolias & Chum, TPAMI 2019",
)
class GeneralizedMeanPooling(Pooling):
    """Power mean of the positive features with one learned exponent p; p = 1 is the mean, p = infinity the maximum.

    It is computed in the log domain, so that powers of 1e-6 do not underflow. `weights` holds the share of each
    position in the sum of powers, averaged over the channels; this is also its share in g, as g is homogeneous.
    """

    def __init__(
        self,
        channels: int,
        p: Annotated[
            float, Slider(1.0, 10.0, "p", "initial exponent: 1 averages, a large value takes the maximum", above=0.0)
        ] = 3.0,
    ) -> None:
        super().__init__(channels)
        self.p = nn.Parameter(torch.tensor(float(p)))

    def forward(self, features: Tensor) -> Tensor:
        """Pool features (B, C, H, W) to (B, C)."""
        self.check(features)
        powers = self.p * features.clamp(min=SMALLEST).log().flatten(2)
        self.weights = powers.detach().softmax(-1).mean(1)
        pooled: Tensor = ((powers.logsumexp(-1) - math.log(powers.shape[-1])) / self.p).exp()
        return pooled
