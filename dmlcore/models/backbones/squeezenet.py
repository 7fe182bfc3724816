"""SqueezeNet 1.0 and 1.1 up to the last feature map, with the parameter names of torchvision's checkpoints."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dmlcore.models.backbones.base import Headless, backbone

# output channels of the first convolution of each of the eight Fire modules
_SQUEEZED = (16, 16, 32, 32, 48, 48, 64, 64)
# output channels of each of the two parallel convolutions in the eight Fire modules
_EXPANDED = (64, 64, 128, 128, 192, 192, 256, 256)


class SqueezeNet(Headless):
    """SqueezeNet: normalised images (B, 3, H, W) to features (B, 512, h, w), without dropout.

    Images must have at least 17 pixels per side (version 1.1) or 21 (version 1.0). The classifier of the checkpoint is
    a convolution before the average pooling, so it cannot be kept as a linear layer after it. The weights are He
    initialised.

    Reference:
        Iandola et al. 2016, as in torchvision.
    """

    out_channels = 512
    first: ClassVar[tuple[int, int]]  # output channels and kernel size of the first convolution, whose stride is 2
    pooled: ClassVar[tuple[int, ...]]  # indices of the Fire modules that follow a max pooling

    def __init__(self) -> None:
        super().__init__()
        channels, size = self.first
        layers: list[nn.Module] = [nn.Conv2d(3, channels, size, stride=2), nn.ReLU(inplace=True)]
        widths = (channels, *(2 * expanded for expanded in _EXPANDED))
        for number, ((inward, outward), squeezed) in enumerate(zip(pairwise(widths), _SQUEEZED, strict=True)):
            if number in self.pooled:
                layers.append(nn.MaxPool2d(3, 2, ceil_mode=True))
            layers.append(Fire(inward, squeezed, outward // 2))
        self.features = nn.Sequential(*layers)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_uniform_(module.weight)
                assert module.bias is not None
                nn.init.zeros_(module.bias)

    def forward(self, images: Tensor) -> Tensor:
        """Return the features (B, out_channels, h, w) of images (B, 3, H, W)."""
        maps: Tensor = self.features(images)
        return maps

    @property
    def depths(self) -> dict[str, int]:
        """Number of channels of the three Fire modules before the last, by name of the module."""
        return {f"fire{number + 2}": 2 * _EXPANDED[number] for number in (4, 5, 6)}

    def with_depths(self, images: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the final feature map, and the outputs of the Fire modules listed in `depths`."""
        maps, fired = images, []
        for layer in self.features:
            maps = layer(maps)
            if isinstance(layer, Fire):
                fired.append(maps)
        return maps, tuple(fired[-4:-1])


@backbone("squeezenet1_0")
class SqueezeNet10(SqueezeNet):
    """SqueezeNet 1.0, which starts with 96 filters of 7 x 7."""

    first, pooled = (96, 7), (0, 3, 7)


@backbone("squeezenet1_1")
class SqueezeNet11(SqueezeNet):
    """SqueezeNet 1.1, which starts with 64 filters of 3 x 3 and halves the feature maps in earlier layers.

    It needs 2.4 times fewer operations than version 1.0 at equal accuracy.
    """

    first, pooled = (64, 3), (0, 2, 4)


class Fire(nn.Module):
    """Fire module: a 1 x 1 convolution to few channels, then parallel 1 x 1 and 3 x 3 convolutions, all with ReLU."""

    def __init__(self, inward: int, squeezed: int, expanded: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(inward, squeezed, 1)
        self.expand1x1 = nn.Conv2d(squeezed, expanded, 1)
        self.expand3x3 = nn.Conv2d(squeezed, expanded, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        """Return features (B, 2 * expanded, h, w) for an input (B, inward, h, w)."""
        x = F.relu(self.squeeze(x), inplace=True)
        return F.relu(torch.cat([self.expand1x1(x), self.expand3x3(x)], 1), inplace=True)
