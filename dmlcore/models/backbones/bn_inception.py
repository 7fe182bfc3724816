"""BN-Inception up to its last feature map, with the parameter names of the PyTorch port that DML papers use."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dmlcore.models.backbones.base import Backbone, Normalisation, backbone, convolution, initialise


class InceptionBlock(NamedTuple):
    """Number of channels in each branch of one Inception block.

    A block with `plain` = 0 and `projected` = 0 halves the size of the feature map. It has no 1 x 1 branch, and its
    pooling branch has no convolution.
    """

    plain: int  # of the 1 x 1 convolution
    three: tuple[int, int]  # channels of the 3 x 3 branch: after the 1 x 1 reduction, and at the output
    # channels of the branch with two 3 x 3 convolutions: after the 1 x 1 reduction, and at the output
    double: tuple[int, int]
    pool: str
    projected: int  # of the pooling branch


_BLOCKS = {
    "3a": InceptionBlock(64, (64, 64), (64, 96), "average", 32),
    "3b": InceptionBlock(64, (64, 96), (64, 96), "average", 64),
    "3c": InceptionBlock(0, (128, 160), (64, 96), "maximum", 0),
    "4a": InceptionBlock(224, (64, 96), (96, 128), "average", 128),
    "4b": InceptionBlock(192, (96, 128), (96, 128), "average", 128),
    "4c": InceptionBlock(160, (128, 160), (128, 160), "average", 128),
    "4d": InceptionBlock(96, (128, 192), (160, 192), "average", 128),
    "4e": InceptionBlock(0, (128, 192), (192, 256), "maximum", 0),
    "5a": InceptionBlock(352, (192, 320), (160, 224), "average", 128),
    "5b": InceptionBlock(352, (192, 320), (192, 224), "maximum", 128),
}


@backbone("bn_inception")
class BNInception(Backbone):
    """BN-Inception: images (B, 3, H, W), BGR in 0..255 minus channel means, to features (B, 1024, h, w).

    Images of 224 pixels per side give feature maps of 7 x 7.

    Names and shapes are those of the port in Cadene's pretrained-models (`bn_inception-52deb4733.pth`), which
    Proxy-NCA, SoftTriple and Proxy-Anchor use, without `last_linear`. The port fails on feature maps with an odd side;
    this module pads them before halving. The momentum of batch norm is 0.1, as in release 0.7.4 of the port. Copies of
    older releases use 0.9, because Caffe defines momentum as the weight of the *old* statistics. The weights are He
    initialised.

    Reference:
        Ioffe & Szegedy, ICML 2015, Fig. 5.
    """

    normalisation = Normalisation((104.0, 117.0, 128.0), (1.0, 1.0, 1.0), order="BGR", scale=255)
    classifier = "last_linear"
    out_channels = 1024

    def __init__(self) -> None:
        super().__init__()
        self._add("conv1_7x7_s2", 3, 64, 7, stride=2)
        self._add("conv2_3x3_reduce", 64, 64, 1)
        self._add("conv2_3x3", 64, 192, 3)
        inward = 192
        for name, block in _BLOCKS.items():
            at, stride = f"inception_{name}", 1 if block.plain else 2
            if block.plain:
                self._add(f"{at}_1x1", inward, block.plain, 1)
            self._add(f"{at}_3x3_reduce", inward, block.three[0], 1)
            self._add(f"{at}_3x3", *block.three, 3, stride)
            self._add(f"{at}_double_3x3_reduce", inward, block.double[0], 1)
            self._add(f"{at}_double_3x3_1", *block.double, 3)
            self._add(f"{at}_double_3x3_2", block.double[1], block.double[1], 3, stride)
            if block.projected:
                self._add(f"{at}_pool_proj", inward, block.projected, 1)
            inward = block.plain + block.three[1] + block.double[1] + (block.projected or inward)
        initialise(self)

    def forward(self, images: Tensor) -> Tensor:
        """Return the features of the last block."""
        return self.blocks(images)["5b"]

    @property
    def depths(self) -> dict[str, int]:
        """Number of channels of each earlier block that GDFL uses (Zabihzadeh et al. 2021), by name of the block."""
        return {"4d": 608, "4e": 1056, "5a": 1024}

    def with_depths(self, images: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the final feature map, and the outputs of the three earlier blocks listed in `depths`."""
        maps = self.blocks(images)
        return maps["5b"], tuple(maps[name] for name in self.depths)

    def blocks(self, images: Tensor) -> dict[str, Tensor]:
        """Return the features of every block by its name, "3a" to "5b"."""
        x = F.max_pool2d(self._unit("conv1_7x7_s2", images), 3, 2, ceil_mode=True)
        x = self._unit("conv2_3x3", self._unit("conv2_3x3_reduce", x))
        x = F.max_pool2d(x, 3, 2, ceil_mode=True)
        maps = {}
        for name, block in _BLOCKS.items():
            x = maps[name] = self._block(f"inception_{name}", block, x)
        return maps

    def _block(self, at: str, block: InceptionBlock, x: Tensor) -> Tensor:
        branches = [self._unit(f"{at}_1x1", x)] if block.plain else []
        branches.append(self._unit(f"{at}_3x3", self._unit(f"{at}_3x3_reduce", x)))
        double = self._unit(f"{at}_double_3x3_1", self._unit(f"{at}_double_3x3_reduce", x))
        branches.append(self._unit(f"{at}_double_3x3_2", double))
        if not block.projected:
            # The port does not pad this pooling; for an odd side its result would be one pixel smaller than that of the
            # strided convolutions.
            odd = (x.shape[2] % 2, x.shape[3] % 2)
            pooled = F.max_pool2d(x, 3, 2, padding=odd, ceil_mode=True)
        elif block.pool == "maximum":
            pooled = F.max_pool2d(x, 3, 1, padding=1)
        else:
            pooled = F.avg_pool2d(x, 3, 1, padding=1)  # padding counts as zeros
        branches.append(self._unit(f"{at}_pool_proj", pooled) if block.projected else pooled)
        return torch.cat(branches, 1)

    def _add(self, name: str, inward: int, outward: int, size: int, stride: int = 1) -> None:
        """Add the convolution `name` (with bias) and the batch norm `name`_bn."""
        self.add_module(name, convolution(inward, outward, size, stride, bias=True))
        self.add_module(f"{name}_bn", nn.BatchNorm2d(outward))

    def _unit(self, name: str, x: Tensor) -> Tensor:
        """Apply the convolution `name`, its batch norm and a ReLU."""
        normalised: Tensor = getattr(self, f"{name}_bn")(getattr(self, name)(x))
        return F.relu(normalised, inplace=True)
