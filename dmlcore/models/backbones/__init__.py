"""Registry of backbones. Each maps normalised images (B, 3, H, W) to feature maps (B, out_channels, h, w)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dmlcore.catalogue import discover, load_plugins
from dmlcore.models.backbones.base import BACKBONES, IMAGENET, Backbone, Normalisation
from dmlcore.spec.own_network import is_own

__all__ = ["BACKBONES", "IMAGENET", "Backbone", "Normalisation", "create", "gives_depths", "names", "smallest"]

TIMM = "timm:"

discover(
    __name__,
    first=(
        *("resnet20", "conv4", "efficientnet_lite", "resnet", "googlenet", "bn_inception", "squeezenet"),
        "mobilenet_v3",
    ),
)


def names() -> list[str]:
    """Return the names of all registered backbones, excluding timm models, which are created as timm:NAME."""
    return list(BACKBONES)


def create(name: str, image: tuple[int, int] | None = None, options: Mapping[str, Any] | None = None) -> Backbone:
    """Create a backbone by name, a module with the attributes `out_channels` and `normalisation`.

    The weights are He initialised, except that timm models keep timm's own initialisation.

    Args:
        name: Name of the backbone, timm:NAME, or package.module:factory for a network of the user.
        image: (H, W) of the images, which some timm models and networks of the user need.
        options: Keyword arguments of the factory of a user's network.

    Raises:
        KeyError: If the name is unknown; the message lists the known names.
        ImportError: If timm is missing, or a user's network is not permitted or cannot be imported.
        ValueError: If timm has no model of this name, or a user's network does not return features.
    """
    if is_own(name):
        from dmlcore.models.backbones.from_user import OwnBackbone

        return OwnBackbone(name, options or {}, image or (64, 64))
    if name.startswith(TIMM):
        from dmlcore.models.backbones.from_timm import TimmBackbone

        return TimmBackbone(name.removeprefix(TIMM), image)
    if name not in BACKBONES:
        raise KeyError(f"unknown backbone {name!r}; known: {', '.join(BACKBONES)}, timm:NAME")
    return BACKBONES[name]()


def smallest(name: str) -> int:
    """Return the smallest image side in pixels that the backbone `name` accepts."""
    return 1 if is_own(name) else BACKBONES.get(name, Backbone).smallest


def gives_depths(name: str) -> bool:
    """Return True if the backbone `name` can also return earlier feature maps. The backbone is not built."""
    return BACKBONES.get(name, Backbone).with_depths is not Backbone.with_depths


load_plugins()  # loaded at the end, because plugins import this package
