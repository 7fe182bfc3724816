"""GoogLeNet with batch norm up to its last feature map, with the parameter names of torchvision's checkpoint."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dmlcore.models.backbones.base import Backbone, Normalisation, backbone, convolution, initialise

# Output channels in each block: 1 x 1 branch; 3 x 3 branch (reduction, output); "5 x 5" branch (reduction, output);
# pooling branch.
_BLOCKS = {
    "3a": (64, (96, 128), (16, 32), 32),
    "3b": (128, (128, 192), (32, 96), 64),
    "4a": (192, (96, 208), (16, 48), 64),
    "4b": (160, (112, 224), (24, 64), 64),
    "4c": (128, (128, 256), (24, 64), 64),
    "4d": (112, (144, 288), (32, 64), 64),
    "4e": (256, (160, 320), (32, 128), 128),
    "5a": (256, (160, 320), (32, 128), 128),
    "5b": (384, (192, 384), (48, 128), 128),
}


@backbone("googlenet")
class GoogLeNet(Backbone):
    """GoogLeNet: normalised images (B, 3, H, W) to features (B, 1024, h, w), without auxiliary heads.

    With pretrained weights, torchvision transforms ImageNet-normalised images x to x (std / 0.5) + (mean - 0.5) / 0.5.
    This equals (image - 0.5) / 0.5, which is the normalisation of this backbone. The weights are He initialised.

    Reference:
        Szegedy et al., CVPR 2015, with batch norm, and with 3 x 3 convolutions where the paper has 5 x 5, as in
        torchvision's weights (its issue 906).
    """

    normalisation = Normalisation((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
    out_channels = 1024

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = Unit(3, 64, 7, stride=2)
        self.conv2 = Unit(64, 64, 1)
        self.conv3 = Unit(64, 192, 3)
        inward = 192
        for name, (plain, threes, fives, pooled) in _BLOCKS.items():
            self.add_module(f"inception{name}", Inception(inward, plain, threes, fives, pooled))
            inward = plain + threes[1] + fives[1] + pooled
        initialise(self)

    def without_place(self) -> tuple[str, ...]:
        """Return the prefixes of the classifier and of the untrained auxiliary heads in torchvision's file."""
        return (*super().without_place(), "aux1.", "aux2.")

    def forward(self, images: Tensor) -> Tensor:
        """Return the features (B, out_channels, h, w) of images (B, 3, H, W)."""
        x = F.max_pool2d(self.conv1(images), 3, 2, ceil_mode=True)
        x = F.max_pool2d(self.conv3(self.conv2(x)), 3, 2, ceil_mode=True)
        for name in _BLOCKS:
            if name in ("4a", "5a"):
                x = F.max_pool2d(x, 3 if name == "4a" else 2, 2, ceil_mode=True)
            x = self.get_submodule(f"inception{name}")(x)
        return x


class Inception(nn.Module):
    """Inception block of four parallel branches: 1 x 1; two of 1 x 1 then 3 x 3; and 3 x 3 max pooling then 1 x 1."""

    def __init__(self, inward: int, plain: int, threes: tuple[int, int], fives: tuple[int, int], pooled: int) -> None:
        super().__init__()
        self.branch1 = Unit(inward, plain, 1)
        self.branch2 = nn.Sequential(Unit(inward, threes[0], 1), Unit(*threes, 3))
        self.branch3 = nn.Sequential(Unit(inward, fives[0], 1), Unit(*fives, 3))
        self.branch4 = nn.Sequential(nn.MaxPool2d(3, 1, padding=1), Unit(inward, pooled, 1))

    def forward(self, x: Tensor) -> Tensor:
        """Return the branches concatenated along the channels."""
        return torch.cat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)], 1)


class Unit(nn.Module):
    """Convolution without bias, followed by batch norm and ReLU."""

    def __init__(self, inward: int, outward: int, size: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = convolution(inward, outward, size, stride)
        self.bn = nn.BatchNorm2d(outward, eps=1e-3)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the convolution, batch norm and ReLU to features (B, C, h, w)."""
        return F.relu(self.bn(self.conv(x)), inplace=True)
