"""Memory that a network takes per sample, from counts stored for each backbone, so that no network has to be built."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from dmlcore.models import backbones
from dmlcore.spec.sections import ModelSpec

FLOAT = 4  # bytes
# number of image pixels per position of the feature map, at the total stride of 16 that most backbones have
MAP_PIXELS = 16 * 16


@dataclass(frozen=True)
class Cost:
    """Memory of a forward pass with one sample.

    Attributes:
        activation_bytes: Bytes kept for the backward pass.
        largest: Size of the largest tensor kept for the backward pass, in bytes.
        parameters: Number of trained parameters.
    """

    activation_bytes: float
    largest: float
    parameters: int


@dataclass(frozen=True)
class Counted:
    """Counts for a backbone and one sample.

    `activation_bytes` and `largest` are per pixel of the input image; the other counts do not depend on its size.
    """

    activation_bytes: float
    largest: float
    parameters: int
    channels: int


# Results of `count` for images of 224 pixels (conv4: 28, resnet20: 32); tests verify some of them.
BACKBONES = {
    "resnet20": Counted(1489.38, 64.0, 269072, 64),
    "conv4": Counted(941.31, 256.0, 112832, 64),
    "conv4_32": Counted(476.65, 128.0, 28768, 32),
    "efficientnet_lite0": Counted(1587.34, 97.72, 3371008, 1280),
    "efficientnet_lite1": Counted(2053.77, 97.72, 4135680, 1280),
    "efficientnet_lite2": Counted(2153.38, 97.72, 4811072, 1280),
    "resnet18": Counted(442.77, 64.0, 11176512, 512),
    "resnet34": Counted(643.36, 64.0, 21284672, 512),
    "resnet50": Counted(1716.23, 64.0, 23508032, 2048),
    "resnet101": Counted(2536.4, 64.0, 42500160, 2048),
    "googlenet": Counted(961.04, 64.0, 5599904, 1024),
    "bn_inception": Counted(878.85, 64.0, 10270240, 1024),
    "squeezenet1_0": Counted(477.28, 90.93, 735424, 512),
    "squeezenet1_1": Counted(283.91, 62.86, 722496, 512),
    "mobilenet_v3_small": Counted(322.94, 18.0, 927008, 576),
    "mobilenet_v3_large": Counted(880.75, 64.0, 2971952, 960),
}


def cost_of(model: ModelSpec, shape: tuple[int, ...]) -> Cost | None:
    """Return the cost of a network on inputs of shape (F,), (3, H, W), or (L,) for tokens; None if it is unknown.

    All pooling methods are counted as average pooling. Of a pretrained classifier that is kept, only the parameters are
    counted. A frozen backbone costs only the reading of its cached feature maps.
    """
    dimension = model.embedding_dim
    if model.name == "tokens":
        kept = FLOAT * shape[0] * dimension
        return Cost(kept, kept, 128 * dimension)
    if model.name == "mlp":
        widths = (shape[0], *model.hidden, dimension)
        parameters = sum(a * b + b for a, b in pairwise(widths))
        return Cost(FLOAT * (2 * sum(widths) - widths[0]), FLOAT * max(widths), parameters)
    if model.name not in backbones.names():
        return None
    counted = BACKBONES.get(model.name) or count(model.name, 64)
    pixels = shape[1] * shape[2]
    features = 1000 if model.keep_classifier else counted.channels
    head = features * dimension + dimension + (counted.channels + 1) * 1000 * model.keep_classifier
    if model.freeze == "backbone":
        read = FLOAT * counted.channels * pixels / MAP_PIXELS
        return Cost(read, read, head)
    return Cost(counted.activation_bytes * pixels, counted.largest * pixels, counted.parameters + head)


@cache
def count(name: str, side: int) -> Counted:
    """Return the counts for a backbone on square images of `side` pixels, using the meta device; takes seconds."""
    with torch.device("meta"):
        network = backbones.create(name)
        two = torch.zeros(2, 3, side, side)
    kept, pixels = _Kept(), 2 * side * side
    with torch.autograd.graph.saved_tensors_hooks(kept.add, lambda t: t):
        network(two)
    parameters = sum(p.numel() for p in network.parameters())
    return Counted(round(kept.bytes / pixels, 2), round(kept.largest / pixels, 2), parameters, network.out_channels)


class _Kept:
    """Counter of the bytes of the tensors kept for a backward pass.

    A storage shared by several tensors is added to the bytes once, and parameters are not added.
    """

    def __init__(self) -> None:
        self.bytes = self.largest = 0
        self._seen: dict[Any, Tensor] = {}

    def add(self, tensor: Tensor) -> Tensor:
        """Count a tensor and return it, as a hook for saved tensors."""
        storage = tensor.untyped_storage()._cdata
        if not isinstance(tensor, nn.Parameter) and storage not in self._seen:
            self._seen[storage] = tensor  # keep a reference, so that the address is not reused
            size = tensor.numel() * tensor.element_size()
            self.bytes, self.largest = self.bytes + size, max(self.largest, size)
        return tensor
