"""Backbones: normalised pictures (B, 3, H, W) -> feature maps (B, out_channels, h, w), by name."""

from __future__ import annotations

import importlib
from typing import Any

from torch import nn

# Loaded at first use: one training needs one of them.
_BACKBONES = {
    "resnet20": ("resnet20", "ResNet20"),
    "resnet18": ("resnet", "ResNet18"),
    "resnet50": ("resnet", "ResNet50"),
}


def names() -> list[str]:
    """Every backbone, the smallest first."""
    return list(_BACKBONES)


def create(name: str) -> Any:
    """The backbone as a module with an attribute `out_channels`, He initialised; KeyError lists the known names."""
    if name not in _BACKBONES:
        raise KeyError(f"unknown backbone {name!r}; known: {', '.join(_BACKBONES)}")
    module, attribute = _BACKBONES[name]
    made: nn.Module = getattr(importlib.import_module(f"dmlcore.backbones.{module}"), attribute)()
    return made
