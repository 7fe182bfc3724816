"""What every backbone is: features, the inputs its weights were trained on, and the classifier of its checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeVar

from torch import Tensor, nn

from dmlcore.catalogue import Catalogue


@dataclass(frozen=True)
class Normalisation:
    """How raw images become inputs: brought to 0..scale, channels in `order`, (x - mean) / std in that order."""

    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    order: Literal["RGB", "BGR"] = "RGB"
    scale: Literal[1, 255] = 1


# Means and deviations of ImageNet's channels, as torchvision's weights and the ResNet20 of the data pack expect.
IMAGENET = Normalisation((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


class Backbone(nn.Module):
    """Normalised images (B, 3, H, W) -> features (B, out_channels, h, w), before any global pooling.

    The classifier of the public checkpoint, a linear layer of `classes` outputs named `classifier`, is absent unless
    `keep_classifier` puts it in; the features never pass it.
    """

    normalisation: Normalisation = IMAGENET
    classifier: ClassVar[str] = "fc"
    classes: ClassVar[int] = 1000
    smallest: ClassVar[int] = 32  # pixels a side of an image
    key_prefix: ClassVar[str] = ""  # of the names here, before those of the checkpoint
    out_channels: int

    @property
    def depths(self) -> Mapping[str, int]:
        """Maps of earlier depths that it can give: their channels by name."""
        return {}

    def with_depths(self, images: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The features, and the maps of `depths` in their order."""
        raise NotImplementedError

    def keep_classifier(self) -> nn.Linear:
        """Add the classifier of the checkpoint, (B, out_channels) -> (B, classes), to be loaded with it."""
        layer = nn.Linear(self.out_channels, self.classes)
        self.add_module(self.classifier, layer)
        return layer

    def without_place(self) -> tuple[str, ...]:
        """How names in a checkpoint begin that this network has no place for, and that may be left out."""
        return () if hasattr(self, self.classifier) else (f"{self.classifier}.",)


BACKBONES: Catalogue[type[Backbone]] = Catalogue("backbone")
Network = TypeVar("Network", bound=type[Backbone])


def backbone(name: str) -> Callable[[Network], Network]:
    """Enter a Backbone that is made without arguments into the catalogue."""

    def enter(network: Network) -> Network:
        BACKBONES.enter(name, network)
        return network

    return enter


class Headless(Backbone):
    """A backbone whose public classifier is no linear layer behind a pooling, so that it cannot be kept."""

    def keep_classifier(self) -> nn.Linear:
        """Raises ValueError."""
        raise ValueError(f"{type(self).__name__} has no linear classifier that could be kept; set it to false")

    def without_place(self) -> tuple[str, ...]:
        """The classifier of torchvision's files."""
        return ("classifier.",)


def initialise(backbone: nn.Module) -> None:
    """He initialisation of all convolutions by the fan out, as torchvision's ResNets; zero biases."""
    for module in backbone.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def convolution(
    inward: int, outward: int, size: int, stride: int = 1, *, groups: int = 1, bias: bool = False
) -> nn.Conv2d:
    """A convolution of odd `size`, padded so that stride 1 keeps the map."""
    return nn.Conv2d(inward, outward, size, stride, padding=size // 2, groups=groups, bias=bias)
