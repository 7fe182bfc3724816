"""ResNet20 for CIFAR, up to its last feature map."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from dmlcore.models.backbones.base import Backbone, backbone


@backbone("resnet20")
class ResNet20(Backbone):
    """ResNet20: normalised images (B, 3, H, W) of at least 32 x 32 to features (B, 64, H/4, W/4).

    Parameters are named as in akamaster/pytorch_resnet_cifar10, without that network's ten-class classifier.

    Reference:
        He et al. 2016, Sec. 4.2, option A shortcuts.
    """

    out_channels, smallest = 64, 16
    classifier = "linear"
    classes = 10

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = _stage(16, 16, stride=1)
        self.layer2 = _stage(16, 32, stride=2)
        self.layer3 = _stage(32, 64, stride=2)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight)

    def forward(self, images: Tensor) -> Tensor:
        """Return the features (B, 64, H/4, W/4) of images (B, 3, H, W)."""
        features = F.relu(self.bn1(self.conv1(images)))
        maps: Tensor = self.layer3(self.layer2(self.layer1(features)))
        return maps


class ResidualBlock(nn.Module):
    """Residual block: two 3 x 3 convolutions with a shortcut that has no parameters."""

    def __init__(self, inward: int, outward: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inward, outward, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outward)
        self.conv2 = nn.Conv2d(outward, outward, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outward)
        self.stride, self.new_channels = stride, outward - inward

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the output of the block for features (B, C, h, w)."""
        features = F.relu(self.bn1(self.conv1(inputs)))
        return F.relu(self.bn2(self.conv2(features)) + self.shortcut(inputs))

    def shortcut(self, inputs: Tensor) -> Tensor:
        """Return the option A shortcut: every stride-th pixel, with missing channels padded by zeros on both sides."""
        half = self.new_channels // 2
        return F.pad(inputs[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, half, half))


def _stage(inward: int, outward: int, stride: int) -> nn.Sequential:
    return nn.Sequential(
        ResidualBlock(inward, outward, stride), ResidualBlock(outward, outward, 1), ResidualBlock(outward, outward, 1)
    )
