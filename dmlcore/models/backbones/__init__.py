"""Backbones: normalised pictures (B, 3, H, W) -> feature maps (B, out_channels, h, w), by name."""

from __future__ import annotations

import importlib

from dmlcore.models.backbones.base import IMAGENET, Backbone, Normalisation

__all__ = ["IMAGENET", "Backbone", "Normalisation", "create", "names"]

TIMM = "timm:"
# Loaded at first use: one training needs one of them.
_BACKBONES = {
    "resnet20": ("resnet20", "ResNet20"),
    "conv4": ("conv4", "Conv4"),
    "conv4_32": ("conv4", "Conv4Narrow"),
    "resnet18": ("resnet", "ResNet18"),
    "resnet34": ("resnet", "ResNet34"),
    "resnet50": ("resnet", "ResNet50"),
    "resnet101": ("resnet", "ResNet101"),
    "googlenet": ("googlenet", "GoogLeNet"),
    "bn_inception": ("bn_inception", "BNInception"),
    "squeezenet1_0": ("squeezenet", "SqueezeNet10"),
    "squeezenet1_1": ("squeezenet", "SqueezeNet11"),
    "mobilenet_v3_small": ("mobilenet_v3", "MobileNetV3Small"),
    "mobilenet_v3_large": ("mobilenet_v3", "MobileNetV3Large"),
}


def names() -> list[str]:
    """Every backbone; timm:NAME is one too where timm is installed."""
    return list(_BACKBONES)


def create(name: str, picture: tuple[int, int] | None = None) -> Backbone:
    """The backbone as a module with `out_channels` and `normalisation`, He initialised (timm's as timm does it).

    picture: (H, W) of the pictures, which some networks of timm must know. KeyError lists the known names; for
    timm:NAME ImportError where timm is missing and ValueError where it has no such network.
    """
    if name.startswith(TIMM):
        from dmlcore.models.backbones.from_timm import TimmBackbone

        return TimmBackbone(name.removeprefix(TIMM), picture)
    if name not in _BACKBONES:
        raise KeyError(f"unknown backbone {name!r}; known: {', '.join(_BACKBONES)}, timm:NAME")
    module, attribute = _BACKBONES[name]
    made: Backbone = getattr(importlib.import_module(f"dmlcore.models.backbones.{module}"), attribute)()
    return made
