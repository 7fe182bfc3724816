"""Global second-order pooling (GSoP), with attention computed from covariances."""

from __future__ import annotations

from typing import Annotated

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dmlcore.catalogue import Slider
from dmlcore.pooling.base import Pooling, init_he_, pooling


@pooling(
    "gsop",
    title="Second-order attention (GSoP)",
    latex=r"g=\frac1n\sum_j\max\big(f_j\odot a^{\mathrm{ch}},\ [f_j]_+\,a^{\mathrm{sp}}_j\big),"
    r"\quad a=\sigma(W\,\mathrm{rowconv}(\mathrm{cov}))",
    source="Gao, Xie, Wang & Li, CVPR 2019; fused as in Gürbüz 2022",
)
class SecondOrderAttention(Pooling):
    """Mean of the elementwise maximum of two attended feature maps.

    One attention is computed from the covariance of the channels, the other from the covariance of the positions. Each
    covariance is batch-normalised and processed row by row. To allow any image size, positions are resampled to a
    square grid and their attention is resampled back, as in the original paper. `weights` is None, because the maximum
    is taken per channel.
    """

    positional = True
    batch_statistics = True

    def __init__(
        self,
        channels: int,
        width: Annotated[int, Slider(8, 256, "d", "channels of the covariances", step=1, above=0, most=4096)] = 128,
        grid: Annotated[int, Slider(2, 16, "s", "positions are resampled to s x s", step=1, above=0, most=64)] = 8,
    ) -> None:
        super().__init__(channels)
        self.grid = grid
        self.reduce_channels = _reduce(channels, width)
        self.reduce_positions = _reduce(channels, width)
        self.channel_rows = _Rows(width)
        self.channel_gate = init_he_(nn.Linear(4 * width, channels))
        self.position_rows = _Rows(grid * grid)
        self.position_gate = init_he_(nn.Linear(4 * grid * grid, grid * grid))

    def forward(self, features: Tensor) -> Tensor:
        """Pool features (B, C, H, W) to (B, C)."""
        self.check(features)
        positive = features.relu()
        channel = torch.sigmoid(self.channel_gate(self.channel_rows(self.reduce_channels(positive).flatten(2))))
        down, across = (_averages(pixels, self.grid).to(features) for pixels in features.shape[2:])
        resampled = down @ self.reduce_positions(positive) @ across.mT
        rows = self.position_rows(resampled.flatten(2).mT).relu()
        spatial = torch.sigmoid(self.position_gate(rows)).view(-1, 1, self.grid, self.grid)
        down, across = (_between(self.grid, pixels).to(spatial) for pixels in features.shape[2:])
        spatial = down @ spatial @ across.mT
        return torch.maximum(features * channel[..., None, None], positive * spatial).mean((2, 3))


class _Rows(nn.Module):
    """Layer that computes the covariance matrix of d variables and maps each of its rows to four outputs.

    Maps samples (B, d, N) of d variables to (B, 4 d).
    """

    def __init__(self, d: int) -> None:
        super().__init__()
        self.normalise = nn.BatchNorm1d(d)
        self.rows = init_he_(nn.Conv1d(d, 4 * d, d, groups=d))

    def forward(self, samples: Tensor) -> Tensor:
        centred = samples - samples.mean(-1, keepdim=True)
        products: Tensor = self.rows(self.normalise(centred @ centred.mT / samples.shape[-1]))
        return products[..., 0]


# `_averages` and `_between` return matrices because, unlike the torch operations that they replace, matrix products
# have deterministic gradients on a GPU.
def _averages(pixels: int, cells: int) -> Tensor:
    """Return the matrix (cells, pixels) of adaptive average pooling: the share of each pixel in each cell."""
    return F.adaptive_avg_pool1d(torch.eye(pixels), cells).mT


def _between(cells: int, pixels: int) -> Tensor:
    """Return the matrix (pixels, cells) of linear interpolation: the share of each cell in each pixel."""
    return F.interpolate(torch.eye(cells)[None], pixels, mode="linear", align_corners=False)[0].mT


def _reduce(channels: int, width: int) -> nn.Sequential:
    return nn.Sequential(init_he_(nn.Conv2d(channels, width, 1)), nn.BatchNorm2d(width), nn.ReLU())
