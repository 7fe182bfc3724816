"""EfficientNet-Lite 0, 1 and 2 up to the last feature map, with the parameter names of the converted checkpoints.

Published preprocessing: the central square of side s / (s + 32) times the shorter side of the image is resized
(bicubic) to s x s pixels, with s = 224 for Lite 0, 240 for Lite 1 and 260 for Lite 2; pixels x in 0..255 in RGB order
become (x - 127) / 128. The lab resizes and crops images by its own settings; only the normalisation is part of the
network. All convolutions pad like TensorFlow's "SAME", so the padding depends on the size of the input.

Parity was checked against the PyPI package efficientnet-lite-pytorch 0.1.0, an independent implementation: all names
and shapes agree, and with the published weights, in double precision, feature maps and logits of images of 64 and 97
pixels and of the published size are equal (`python -m tests.models.backbones.golden_lite`, which also writes the values
that the tests compare).
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import torch.nn.functional as F
from torch import Tensor, nn

from dmlcore.models.backbones.base import Backbone, Normalisation, backbone, initialise


class LiteStage(NamedTuple):
    """Settings of a stage of inverted residual blocks; only its first block has the stride."""

    blocks: int
    size: int  # kernel size of the depthwise convolution
    stride: int
    expansion: int
    outward: int


STAGES = (
    LiteStage(1, 3, 1, 1, 16),
    LiteStage(2, 3, 2, 6, 24),
    LiteStage(2, 5, 2, 6, 40),
    LiteStage(3, 3, 2, 6, 80),
    LiteStage(3, 5, 1, 6, 112),
    LiteStage(4, 5, 2, 6, 192),
    LiteStage(1, 3, 1, 6, 320),
)
STEM, HEAD = 32, 1280  # channels of the first and of the last convolution, which are the same in all sizes


class EfficientNetLite(Backbone):
    """EfficientNet-Lite: normalised images (B, 3, H, W) to features (B, 1280, h, w), without dropout.

    It is an EfficientNet without squeeze-and-excitation, with ReLU6 instead of swish. `width` scales the channels and
    `depth` the numbers of blocks, except those of the first and last stage. The weights are He initialised.

    Reference:
        Tan & Le, ICML 2019; the Lite variants are in the TPU repository of TensorFlow (2020).
    """

    out_channels = HEAD
    normalisation = Normalisation((127.0, 127.0, 127.0), (128.0, 128.0, 128.0), scale=255)
    classifier = "_fc"
    width: ClassVar[float]
    depth: ClassVar[float]

    def __init__(self) -> None:
        super().__init__()
        self._conv_stem = SameConvolution(3, STEM, 3, 2)
        self._bn0 = batch_norm(STEM)
        blocks, inward = [], STEM
        for stage in STAGES:
            outward = scaled_channels(stage.outward, self.width)
            is_scaled = stage not in (STAGES[0], STAGES[-1])
            self.early_channels = inward  # after the loop: input channels of the last stage, which has one block
            for index in range(math.ceil(self.depth * stage.blocks) if is_scaled else stage.blocks):
                blocks.append(LiteBlock(inward, outward, stage, stage.stride if index == 0 else 1))
                inward = outward
        self._blocks = nn.ModuleList(blocks)
        self._conv_head = SameConvolution(inward, HEAD, 1)
        self._bn1 = batch_norm(HEAD)
        initialise(self)

    def forward(self, images: Tensor) -> Tensor:
        """Return the features (B, 1280, h, w) of images (B, 3, H, W)."""
        return self.forward_late(self.forward_early(images))

    def forward_early(self, images: Tensor) -> Tensor:
        """Return the maps (B, early_channels, h, w) before the last block, of images (B, 3, H, W)."""
        maps: Tensor = F.relu6(self._bn0(self._conv_stem(images)), inplace=True)
        for block in self._blocks[:-1]:
            maps = block(maps)
        return maps

    def forward_late(self, maps: Tensor) -> Tensor:
        """Return the features (B, 1280, h, w) that the last block and the last convolution compute from `maps`."""
        return F.relu6(self._bn1(self._conv_head(self._blocks[-1](maps))), inplace=True)

    def last_stage(self) -> tuple[nn.Module, ...]:
        """Return the last block, the last convolution and its batch norm."""
        return self._blocks[-1], self._conv_head, self._bn1


@backbone("efficientnet_lite0")
class EfficientNetLite0(EfficientNetLite):
    """EfficientNet-Lite 0, 3.4 million parameters without the classifier; published with images of 224 pixels."""

    width, depth = 1.0, 1.0


@backbone("efficientnet_lite1")
class EfficientNetLite1(EfficientNetLite):
    """EfficientNet-Lite 1, 4.1 million parameters without the classifier; published with images of 240 pixels."""

    width, depth = 1.0, 1.1


@backbone("efficientnet_lite2")
class EfficientNetLite2(EfficientNetLite):
    """EfficientNet-Lite 2, 4.8 million parameters without the classifier; published with images of 260 pixels."""

    width, depth = 1.1, 1.2


class LiteBlock(nn.Module):
    """Inverted residual block: 1 x 1 expansion, depthwise convolution, 1 x 1 projection, all with batch norm.

    The input is added to the output if both have the same shape.
    """

    def __init__(self, inward: int, outward: int, stage: LiteStage, stride: int) -> None:
        super().__init__()
        expanded = inward * stage.expansion
        self.expands = stage.expansion != 1
        if self.expands:
            self._expand_conv, self._bn0 = SameConvolution(inward, expanded, 1), batch_norm(expanded)
        self._depthwise_conv = SameConvolution(expanded, expanded, stage.size, stride, groups=expanded)
        self._bn1 = batch_norm(expanded)
        self._project_conv, self._bn2 = SameConvolution(expanded, outward, 1), batch_norm(outward)
        self.is_residual = stride == 1 and inward == outward

    def forward(self, x: Tensor) -> Tensor:
        """Return the output of the block for features (B, C, h, w)."""
        maps = F.relu6(self._bn0(self._expand_conv(x)), inplace=True) if self.expands else x
        maps = F.relu6(self._bn1(self._depthwise_conv(maps)), inplace=True)
        projected: Tensor = self._bn2(self._project_conv(maps))
        return projected + x if self.is_residual else projected


class SameConvolution(nn.Conv2d):
    """Convolution without bias and with TensorFlow's padding "SAME": stride s maps n pixels to ceil(n / s).

    If the padding is odd, the additional zeros are at the right and at the bottom.
    """

    def __init__(self, inward: int, outward: int, size: int, stride: int = 1, *, groups: int = 1) -> None:
        padding = size // 2 if stride == 1 else 0
        super().__init__(inward, outward, size, stride, padding=padding, groups=groups, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the convolved features (B, C, h, w)."""
        if self.stride[0] > 1:
            (top, bottom), (left, right) = (_padding(n, self.kernel_size[0], self.stride[0]) for n in x.shape[2:])
            x = F.pad(x, (left, right, top, bottom))
        return super().forward(x)


def batch_norm(channels: int) -> nn.BatchNorm2d:
    """Create a batch norm with the published settings."""
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01)


def scaled_channels(channels: int, width: float) -> int:
    """Scale by `width` and round to the nearest multiple of 8 that is not more than 10 % below the scaled number."""
    scaled = channels * width
    nearest = max(8, int(scaled + 4) // 8 * 8)
    return nearest + 8 if nearest < 0.9 * scaled else nearest


def _padding(pixels: int, size: int, stride: int) -> tuple[int, int]:
    """Return the numbers of zeros before and after `pixels` values."""
    total = max((math.ceil(pixels / stride) - 1) * stride + size - pixels, 0)
    return total // 2, total - total // 2
