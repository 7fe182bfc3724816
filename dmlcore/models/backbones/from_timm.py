"""Adapter that turns timm models into backbones: their feature maps or tokens become features (B, C, h, w)."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor, nn

from dmlcore.models.backbones.base import IMAGENET, Backbone, Normalisation


class TimmBackbone(Backbone):
    """Backbone from timm, with timm's initialisation and parameter names.

    Normalised images (B, 3, H, W) become features (B, out_channels, h, w). The tokens (B, n, C) of a vision transformer
    are reshaped to a feature map, without the class and register tokens that precede the patches. Feature maps (B, h,
    w, C) are permuted to (B, C, h, w).

    Args:
        name: Name of the model in timm.
        image: (H, W) of the images, for networks with a fixed input size.

    Raises:
        ImportError: If timm is missing.
        ValueError: If timm has no model of this name.

    Reference:
        Wightman, github.com/huggingface/pytorch-image-models.
    """

    key_prefix = "network."

    def __init__(self, name: str, image: tuple[int, int] | None = None) -> None:
        super().__init__()
        try:
            import timm
        except ImportError:
            raise ImportError(
                f"timm:{name} needs timm, which is not installed: pip install timm, or choose another network"
            ) from None
        if not timm.is_model(name):
            raise ValueError(f"timm has no network {name!r}; timm.list_models() lists the available ones")
        config: Any = timm.get_pretrained_cfg(name)
        sized = {"img_size": image} if image and getattr(config, "fixed_input_size", False) else {}
        try:
            self.network: Any = timm.create_model(name, pretrained=False, num_classes=0, global_pool="", **sized)
        except (AssertionError, RuntimeError, TypeError) as error:
            raise ValueError(f"timm:{name} cannot be created without its global pooling: {error}") from None
        self.name = name
        classifiers = getattr(config, "classifier", None) or ()
        self._classifiers = (classifiers,) if isinstance(classifiers, str) else tuple(classifiers)
        self.out_channels = int(getattr(self.network, "head_hidden_size", None) or self.network.num_features)
        self.normalisation = _normalisation(config)

    def keep_classifier(self) -> nn.Linear:
        """Raise ValueError, because each timm model has its classifier in a different place."""
        raise ValueError(f"the classifier of timm:{self.name} cannot be kept; choose model.keep_classifier=false")

    def without_place(self) -> tuple[str, ...]:
        """Return the prefixes of classifier parameters in timm's checkpoint files."""
        return tuple(f"{self.key_prefix}{name}." for name in self._classifiers)

    def forward(self, images: Tensor) -> Tensor:
        """Return the features (B, out_channels, h, w) of images (B, 3, H, W)."""
        maps: Tensor = self.network(images)
        if maps.ndim == 3:
            maps = self._map(maps, images)
        elif maps.ndim == 4 and maps.shape[1] != self.out_channels == maps.shape[3]:
            maps = maps.permute(0, 3, 1, 2)
        if maps.ndim != 4 or maps.shape[1] != self.out_channels:
            raise ValueError(
                f"timm:{self.name} gives features of shape {tuple(maps.shape)}, not a map of "
                f"{self.out_channels} channels; choose another network"
            )
        return maps

    def _map(self, tokens: Tensor, images: Tensor) -> Tensor:
        """Reshape tokens (B, n, C) to (B, C, h, w) with the aspect ratio of the images."""
        tokens = tokens[:, int(getattr(self.network, "num_prefix_tokens", 0)) :]
        height, width = images.shape[2:]
        rows = round(math.sqrt(tokens.shape[1] * height / width))
        if rows < 1 or tokens.shape[1] % rows:
            raise ValueError(f"timm:{self.name}: {tokens.shape[1]} tokens do not form a grid; choose another network")
        maps: Tensor = tokens.mT.unflatten(2, (rows, -1))
        return maps


def _normalisation(config: Any) -> Normalisation:
    mean, std = (tuple(map(float, getattr(config, key, None) or getattr(IMAGENET, key))) for key in ("mean", "std"))
    if len(mean) != 3 or len(std) != 3:
        raise ValueError("this timm network does not accept images of three channels; choose another one")
    return Normalisation((mean[0], mean[1], mean[2]), (std[0], std[1], std[2]))
