"""Convolutional block attention (CBAM) before average pooling."""

from __future__ import annotations

from typing import Annotated

import torch
from torch import Tensor, nn

from dmlcore.catalogue import Slider
from dmlcore.pooling.base import Pooling, init_he_, normalise_shares, pooling


@pooling(
    "cbam",
    title="Block attention (CBAM)",
    latex=r"g=\frac1n\sum_j a_j x_j,\quad x=f\odot\sigma(\mathrm{MLP}(\bar f)+\mathrm{MLP}(\max f)),"
    r"\quad a=\sigma(\mathrm{conv}_{3\times3}[\mathrm{mean}_kx;\max_kx])",
    source="Woo, Park, Lee & Kweon, ECCV 2018",
)
class BlockAttention(Pooling):
    """Average pooling after channel attention and then spatial attention.

    `weights` is the normalised spatial attention.
    """

    positional = True

    def __init__(
        self,
        channels: int,
        reduction: Annotated[int, Slider(1, 64, "r", "the MLP has C / r hidden units", step=1, above=0)] = 16,
    ) -> None:
        super().__init__(channels)
        hidden = max(1, channels // reduction)
        self.mlp = nn.Sequential(
            init_he_(nn.Linear(channels, hidden, bias=False)),
            nn.ReLU(),
            init_he_(nn.Linear(hidden, channels, bias=False)),
        )
        self.spatial = init_he_(nn.Conv2d(2, 1, 3, padding=1, bias=False))

    def forward(self, features: Tensor) -> Tensor:
        """Pool features (B, C, H, W) to (B, C)."""
        self.check(features)
        channel = torch.sigmoid(self.mlp(features.mean((2, 3))) + self.mlp(features.amax((2, 3))))
        x = features * channel[..., None, None]
        a = torch.sigmoid(self.spatial(torch.stack((x.mean(1), x.amax(1)), dim=1))).flatten(1)
        self.weights = normalise_shares(a)
        return (x.flatten(2) @ a[..., None])[..., 0] / a.shape[1]
