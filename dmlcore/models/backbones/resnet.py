"""ResNet-18, 34, 50 and 101 without their classifier, with the parameter names of torchvision's checkpoints."""

from __future__ import annotations

from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from dmlcore.models.backbones.base import Backbone, backbone, initialise


class ResNet(Backbone):
    """ResNet: normalised images (B, 3, H, W) to features (B, out_channels, ceil(H / 32), ceil(W / 32)), He initialised.

    Names and shapes of parameters and buffers are those of torchvision without `fc`. The stride of a bottleneck is in
    its 3 x 3 convolution, as in torchvision's weights.

    Reference:
        He, Zhang, Ren & Sun, CVPR 2016.
    """

    blocks: ClassVar[tuple[int, int, int, int]]
    block: ClassVar[type[Basic] | type[Bottleneck]]

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, 2, padding=1)
        inward = 64
        for stage, (width, count) in enumerate(zip((64, 128, 256, 512), self.blocks, strict=True), start=1):
            outward = width * self.block.expansion
            self.early_channels = inward  # after the loop: input channels of stage 4
            strides = [1 if stage == 1 else 2] + [1] * (count - 1)
            inwards = [inward] + [outward] * (count - 1)
            made = (self.block(a, width, stride) for a, stride in zip(inwards, strides, strict=True))
            self.add_module(f"layer{stage}", nn.Sequential(*made))
            inward = outward
        self.out_channels = inward
        initialise(self)

    def forward(self, images: Tensor) -> Tensor:
        """Return the features (B, out_channels, h, w) of images (B, 3, H, W)."""
        return self.forward_late(self.forward_early(images))

    def forward_early(self, images: Tensor) -> Tensor:
        """Return the maps (B, early_channels, h, w) of stage 3, of images (B, 3, H, W)."""
        x: Tensor = self.maxpool(F.relu(self.bn1(self.conv1(images)), inplace=True))
        for stage in (1, 2, 3):
            x = self.get_submodule(f"layer{stage}")(x)
        return x

    def forward_late(self, maps: Tensor) -> Tensor:
        """Return the features (B, out_channels, h, w) that stage 4 computes from maps of stage 3."""
        features: Tensor = self.get_submodule("layer4")(maps)
        return features

    def last_stage(self) -> tuple[nn.Module, ...]:
        """Return stage 4."""
        return (self.get_submodule("layer4"),)


class Basic(nn.Module):
    """Basic residual block: two 3 x 3 convolutions with a shortcut."""

    expansion: ClassVar[int] = 1

    def __init__(self, inward: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inward, width, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = _projection(inward, width, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Return the output of the block for features (B, C, h, w)."""
        inside = F.relu(self.bn1(self.conv1(x)), inplace=True)
        return F.relu(self.bn2(self.conv2(inside)) + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(nn.Module):
    """Bottleneck residual block: convolutions of 1 x 1, 3 x 3 and 1 x 1 with a shortcut.

    The output has four times the channels of the inner convolution.
    """

    expansion: ClassVar[int] = 4

    def __init__(self, inward: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inward, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.downsample = _projection(inward, 4 * width, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Return the output of the block for features (B, C, h, w)."""
        inside = F.relu(self.bn1(self.conv1(x)), inplace=True)
        inside = F.relu(self.bn2(self.conv2(inside)), inplace=True)
        return F.relu(self.bn3(self.conv3(inside)) + (x if self.downsample is None else self.downsample(x)))


@backbone("resnet18")
class ResNet18(ResNet):
    """ResNet-18: four stages of two basic blocks, 512 output channels."""

    blocks = (2, 2, 2, 2)
    block = Basic


@backbone("resnet34")
class ResNet34(ResNet):
    """ResNet-34: stages of 3, 4, 6 and 3 basic blocks, 512 output channels."""

    blocks = (3, 4, 6, 3)
    block = Basic


@backbone("resnet50")
class ResNet50(ResNet):
    """ResNet-50: stages of 3, 4, 6 and 3 bottlenecks, 2048 output channels."""

    blocks = (3, 4, 6, 3)
    block = Bottleneck


@backbone("resnet101")
class ResNet101(ResNet):
    """ResNet-101: stages of 3, 4, 23 and 3 bottlenecks, 2048 output channels."""

    blocks = (3, 4, 23, 3)
    block = Bottleneck


def _projection(inward: int, outward: int, stride: int) -> nn.Sequential | None:
    """Return the 1 x 1 projection of the shortcut if `stride` or the number of channels requires one, else None."""
    if stride == 1 and inward == outward:
        return None
    return nn.Sequential(nn.Conv2d(inward, outward, 1, stride, bias=False), nn.BatchNorm2d(outward))
