"""Base class of backbones, which extract features, and the settings of their input normalisation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeVar

from torch import Tensor, nn

from dmlcore.catalogue import Catalogue


@dataclass(frozen=True)
class Normalisation:
    """Normalisation of raw images: scale to 0..scale, order channels as in `order`, then compute (x - mean) / std."""

    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    order: Literal["RGB", "BGR"] = "RGB"
    scale: Literal[1, 255] = 1


# Channel means and standard deviations of ImageNet, with which the torchvision weights and the ResNet20 in the data
# pack were trained.
IMAGENET = Normalisation((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


class Backbone(nn.Module):
    """Network that maps normalised images (B, 3, H, W) to features (B, out_channels, h, w), before global pooling.

    The classifier in the published checkpoint is a linear layer with `classes` outputs, and `classifier` is the name of
    this layer. The layer exists only after `keep_classifier`, and `forward` does not apply it.
    """

    normalisation: Normalisation = IMAGENET
    classifier: ClassVar[str] = "fc"
    classes: ClassVar[int] = 1000
    smallest: ClassVar[int] = 32  # smallest accepted side of an image in pixels
    key_prefix: ClassVar[str] = ""  # prefix that parameter names have in this module but not in the checkpoint file
    out_channels: int
    early_channels: int = 0  # channels of the maps before the last stage; 0 if the backbone has no `forward_early`

    def forward_early(self, images: Tensor) -> Tensor:
        """Return the maps (B, early_channels, h', w') before the last stage, of normalised images (B, 3, H, W)."""
        raise NotImplementedError

    def forward_late(self, maps: Tensor) -> Tensor:
        """Return the features (B, out_channels, h, w) that the last stage computes from `forward_early`'s result."""
        raise NotImplementedError

    def last_stage(self) -> tuple[nn.Module, ...]:
        """Return the modules that `forward_late` applies; `forward_early` applies all others."""
        raise NotImplementedError

    @property
    def depths(self) -> Mapping[str, int]:
        """Number of channels of each earlier feature map that `with_depths` returns, by name of the map."""
        return {}

    def with_depths(self, images: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the final feature map, and a tuple of the earlier feature maps in the order of `depths`."""
        raise NotImplementedError

    def keep_classifier(self) -> nn.Linear:
        """Add and return the checkpoint's classifier (B, out_channels) -> (B, classes), so that its weights load."""
        layer = nn.Linear(self.out_channels, self.classes)
        self.add_module(self.classifier, layer)
        return layer

    def without_place(self) -> tuple[str, ...]:
        """Return the prefixes of checkpoint entries that may be ignored because this network has no such parameters."""
        return () if hasattr(self, self.classifier) else (f"{self.classifier}.",)


BACKBONES: Catalogue[type[Backbone]] = Catalogue("backbone")
Network = TypeVar("Network", bound=type[Backbone])


def backbone(name: str) -> Callable[[Network], Network]:
    """Return a decorator that registers a backbone class under `name`; the class takes no arguments."""

    def enter(network: Network) -> Network:
        BACKBONES.enter(name, network)
        return network

    return enter


class Headless(Backbone):
    """Base class of backbones with a published classifier that is not one linear layer after pooling."""

    def keep_classifier(self) -> nn.Linear:
        """Raise ValueError, because the classifier is not a linear layer after a pooling."""
        raise ValueError(f"{type(self).__name__} has no linear classifier to keep; set it to false")

    def without_place(self) -> tuple[str, ...]:
        """Return the prefixes of the weights of torchvision's classifier, which are skipped on loading."""
        return ("classifier.",)


def initialise(backbone: nn.Module) -> None:
    """Initialise all convolutions by He's rule with fan-out, as torchvision's ResNets do, and biases with zero."""
    for module in backbone.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def convolution(
    inward: int, outward: int, size: int, stride: int = 1, *, groups: int = 1, bias: bool = False
) -> nn.Conv2d:
    """Create a convolution of odd `size`, padded so that stride 1 preserves the size of the map."""
    return nn.Conv2d(inward, outward, size, stride, padding=size // 2, groups=groups, bias=bias)
