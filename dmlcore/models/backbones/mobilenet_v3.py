"""MobileNetV3, small and large, up to the last feature map, with the parameter names of torchvision's checkpoints."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import torch.nn.functional as F
from torch import Tensor, nn

from dmlcore.models.backbones.base import Headless, backbone, convolution, initialise


class Bneck(NamedTuple):
    """Settings of one inverted residual block, as in a row of Table 1 or 2 in Howard et al. 2019.

    The number of input channels is the number of output channels of the previous row.
    """

    size: int  # kernel size of the depthwise convolution
    expanded: int
    outward: int
    squeezes: bool
    hard_swish: bool  # otherwise ReLU
    stride: int


_LARGE = (
    *(
        Bneck(3, 16, 16, False, False, 1),
        Bneck(3, 64, 24, False, False, 2),
        Bneck(3, 72, 24, False, False, 1),
    ),
    *(
        Bneck(5, 72, 40, True, False, 2),
        Bneck(5, 120, 40, True, False, 1),
        Bneck(5, 120, 40, True, False, 1),
    ),
    *(
        Bneck(3, 240, 80, False, True, 2),
        Bneck(3, 200, 80, False, True, 1),
        Bneck(3, 184, 80, False, True, 1),
    ),
    *(
        Bneck(3, 184, 80, False, True, 1),
        Bneck(3, 480, 112, True, True, 1),
        Bneck(3, 672, 112, True, True, 1),
    ),
    *(
        Bneck(5, 672, 160, True, True, 2),
        Bneck(5, 960, 160, True, True, 1),
        Bneck(5, 960, 160, True, True, 1),
    ),
)
_SMALL = (
    *(
        Bneck(3, 16, 16, True, False, 2),
        Bneck(3, 72, 24, False, False, 2),
        Bneck(3, 88, 24, False, False, 1),
    ),
    *(
        Bneck(5, 96, 40, True, True, 2),
        Bneck(5, 240, 40, True, True, 1),
        Bneck(5, 240, 40, True, True, 1),
    ),
    *(Bneck(5, 120, 48, True, True, 1), Bneck(5, 144, 48, True, True, 1)),
    *(
        Bneck(5, 288, 96, True, True, 2),
        Bneck(5, 576, 96, True, True, 1),
        Bneck(5, 576, 96, True, True, 1),
    ),
)


class MobileNetV3(Headless):
    """MobileNetV3: normalised images (B, 3, H, W) to features (B, out_channels, h, w), without dropout.

    The classifier of the checkpoint has two layers, so it cannot be kept as one linear layer. The weights are He
    initialised.

    Reference:
        Howard et al., ICCV 2019, as in torchvision.
    """

    rows: ClassVar[tuple[Bneck, ...]]

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [unit(3, 16, 3, nn.Hardswish, stride=2)]
        inward = 16
        for row in self.rows:
            layers.append(InvertedResidual(inward, row))
            inward = row.outward
        layers.append(unit(inward, self.out_channels, 1, nn.Hardswish))
        self.features = nn.Sequential(*layers)
        initialise(self)

    def forward(self, images: Tensor) -> Tensor:
        """Return the features (B, out_channels, h, w) of images (B, 3, H, W)."""
        maps: Tensor = self.features(images)
        return maps


@backbone("mobilenet_v3_small")
class MobileNetV3Small(MobileNetV3):
    """MobileNetV3 Small, 0.9 million parameters."""

    out_channels, rows = 576, _SMALL


@backbone("mobilenet_v3_large")
class MobileNetV3Large(MobileNetV3):
    """MobileNetV3 Large, 3.0 million parameters."""

    out_channels, rows = 960, _LARGE


class InvertedResidual(nn.Module):
    """Inverted residual block: 1 x 1 expansion, depthwise convolution, channel attention, 1 x 1 projection.

    The input is added to the output if both have the same shape.
    """

    def __init__(self, inward: int, row: Bneck) -> None:
        super().__init__()
        activation = nn.Hardswish if row.hard_swish else nn.ReLU
        layers: list[nn.Module] = []
        if row.expanded != inward:
            layers.append(unit(inward, row.expanded, 1, activation))
        layers.append(unit(row.expanded, row.expanded, row.size, activation, row.stride, groups=row.expanded))
        if row.squeezes:
            layers.append(SqueezeExcitation(row.expanded))
        layers.append(unit(row.expanded, row.outward, 1, None))
        self.block = nn.Sequential(*layers)
        self.is_residual = row.stride == 1 and inward == row.outward

    def forward(self, x: Tensor) -> Tensor:
        """Return the output of the block for features (B, C, h, w)."""
        maps: Tensor = self.block(x)
        return maps + x if self.is_residual else maps


class SqueezeExcitation(nn.Module):
    """Squeeze-and-excitation with a bottleneck of C / 4 units and a hard sigmoid that gives the channel weights."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        squeezed = _divisible(channels // 4)
        self.fc1, self.fc2 = nn.Conv2d(channels, squeezed, 1), nn.Conv2d(squeezed, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return the features (B, C, h, w) with weighted channels."""
        return x * F.hardsigmoid(self.fc2(F.relu(self.fc1(x.mean((2, 3), keepdim=True)))))


def unit(
    inward: int, outward: int, size: int, activation: type[nn.Module] | None, stride: int = 1, *, groups: int = 1
) -> nn.Sequential:
    """Create a convolution without bias, followed by batch norm and, unless it is None, the activation."""
    layers = [
        convolution(inward, outward, size, stride, groups=groups),
        nn.BatchNorm2d(outward, eps=1e-3, momentum=0.01),
    ]
    return nn.Sequential(*layers, *([activation()] if activation else []))


def _divisible(channels: int) -> int:
    """Round to the nearest multiple of 8 that is not more than 10 % below `channels`."""
    nearest = max(8, (channels + 4) // 8 * 8)
    return nearest + 8 if nearest < 0.9 * channels else nearest
