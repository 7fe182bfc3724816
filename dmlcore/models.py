"""Networks that end in a linear embedding: an MLP for vectors, the CIFAR ResNet20 for pictures of 32 x 32 and up."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dmlcore.spec import ModelSpec

Layer = TypeVar("Layer", nn.Linear, nn.Conv2d)
LEAKY_SLOPE = 0.01
# Channel means and deviations of natural pictures in 0..1 (ImageNet), as the ResNet20 weights of the data pack expect.
PICTURE_MEAN = (0.485, 0.456, 0.406)
PICTURE_STD = (0.229, 0.224, 0.225)


class ModelError(ValueError):
    """A network that does not fit the data; the message says which inputs it takes."""


def build(
    spec: ModelSpec, input_shape: Sequence[int], *, seed: int, mean: float = 0.0, std: float = 1.0
) -> MLP | ResNet20:
    """Build and initialise a network, a function of `seed` alone.

    input_shape: (F,) for vectors, (3, H, W) for pictures. mean, std: of the training vectors; pictures have fixed ones.
    Raises ModelError if the network cannot take such inputs.
    """
    shape = tuple(input_shape)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        if spec.name == "mlp":
            if len(shape) != 1:
                raise ModelError(f"mlp takes vectors, these inputs have shape {shape}; choose model.name=resnet20")
            return MLP(shape[0], spec, mean, std)
        if len(shape) != 3 or shape[0] != 3 or min(shape[1:]) < 32:
            raise ModelError(f"resnet20 takes pictures (3, H, W) of at least 32 x 32, these inputs have shape {shape}")
        return ResNet20(spec)


class Normalise(nn.Module):
    """(x - mean) / std over the channels or features, after bringing uint8 to 0..1: raw inputs go in."""

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Tensor, std: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)

    def forward(self, inputs: Tensor) -> Tensor:
        values = inputs.float() / 255 if inputs.dtype == torch.uint8 else inputs
        return (values - self.mean) / self.std


class MLP(nn.Module):
    """(B, F) vectors -> (B, D) embeddings: linear layers with leaky ReLUs between them."""

    def __init__(self, features: int, spec: ModelSpec, mean: float, std: float) -> None:
        super().__init__()
        self.normalise = Normalise(torch.tensor(mean), torch.tensor(std))
        widths = (features, *spec.hidden)
        self.hidden = nn.ModuleList(_he(nn.Linear(a, b)) for a, b in pairwise(widths))
        self.linear = _he(nn.Linear(widths[-1], spec.embedding_dim))
        self.on_sphere = spec.normalize

    def forward(self, inputs: Tensor) -> Tensor:
        features = self.normalise(inputs)
        for layer in self.hidden:
            features = F.leaky_relu(layer(features), LEAKY_SLOPE)
        return _embed(self.linear(features), self.on_sphere)


class ResNet20(nn.Module):
    """(B, 3, H, W) pictures -> (B, D) embeddings (He et al. 2016, section 4.2, option A shortcuts).

    Names of the parameters are those of akamaster/pytorch_resnet_cifar10; `linear` is the embedding layer. The global
    average pool lets it take any size from 32 x 32 up.
    """

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.normalise = Normalise(_channels(PICTURE_MEAN), _channels(PICTURE_STD))
        self.conv1 = _he(nn.Conv2d(3, 16, 3, padding=1, bias=False))
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = _stage(16, 16, stride=1)
        self.layer2 = _stage(16, 32, stride=2)
        self.layer3 = _stage(32, 64, stride=2)
        self.linear = _he(nn.Linear(64, spec.embedding_dim))
        self.on_sphere = spec.normalize

    def forward(self, inputs: Tensor) -> Tensor:
        features = F.relu(self.bn1(self.conv1(self.normalise(inputs))))
        features = self.layer3(self.layer2(self.layer1(features)))
        return _embed(self.linear(features.mean(dim=(2, 3))), self.on_sphere)


class Block(nn.Module):
    """Two 3 x 3 convolutions around a shortcut without parameters."""

    def __init__(self, inward: int, outward: int, stride: int) -> None:
        super().__init__()
        self.conv1 = _he(nn.Conv2d(inward, outward, 3, stride, padding=1, bias=False))
        self.bn1 = nn.BatchNorm2d(outward)
        self.conv2 = _he(nn.Conv2d(outward, outward, 3, padding=1, bias=False))
        self.bn2 = nn.BatchNorm2d(outward)
        self.stride, self.new_channels = stride, outward - inward

    def forward(self, inputs: Tensor) -> Tensor:
        features = F.relu(self.bn1(self.conv1(inputs)))
        return F.relu(self.bn2(self.conv2(features)) + self.shortcut(inputs))

    def shortcut(self, inputs: Tensor) -> Tensor:
        """Option A: every stride-th pixel, and as many zero channels on each side as are missing."""
        half = self.new_channels // 2
        return F.pad(inputs[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, half, half))


def _stage(inward: int, outward: int, stride: int) -> nn.Sequential:
    return nn.Sequential(Block(inward, outward, stride), Block(outward, outward, 1), Block(outward, outward, 1))


def _embed(features: Tensor, on_sphere: bool) -> Tensor:
    return F.normalize(features, dim=1) if on_sphere else features


def _he(layer: Layer) -> Layer:
    """He initialisation (fan in), zero bias."""
    nn.init.kaiming_normal_(layer.weight)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


def _channels(values: tuple[float, ...]) -> Tensor:
    return torch.tensor(values).view(-1, 1, 1)
