"""Backbones: normalised images (B, 3, H, W) -> feature maps (B, out_channels, h, w), by name."""

from __future__ import annotations

from dmlcore.catalogue import discover, load_plugins
from dmlcore.models.backbones.base import BACKBONES, IMAGENET, Backbone, Normalisation

__all__ = ["BACKBONES", "IMAGENET", "Backbone", "Normalisation", "create", "gives_depths", "names", "smallest"]

TIMM = "timm:"

discover(__name__, first=("resnet20", "conv4", "resnet", "googlenet", "bn_inception", "squeezenet", "mobilenet_v3"))


def names() -> list[str]:
    """Every backbone; timm:NAME is one too where timm is installed."""
    return list(BACKBONES)


def create(name: str, image: tuple[int, int] | None = None) -> Backbone:
    """The backbone as a module with `out_channels` and `normalisation`, He initialised (timm's as timm does it).

    image: (H, W) of the images, which some networks of timm must know. KeyError lists the known names; for
    timm:NAME ImportError where timm is missing and ValueError where it has no such network.
    """
    if name.startswith(TIMM):
        from dmlcore.models.backbones.from_timm import TimmBackbone

        return TimmBackbone(name.removeprefix(TIMM), image)
    if name not in BACKBONES:
        raise KeyError(f"unknown backbone {name!r}; known: {', '.join(BACKBONES)}, timm:NAME")
    return BACKBONES[name]()


def smallest(name: str) -> int:
    """Pixels a side that the images of a backbone have at least."""
    return BACKBONES.get(name, Backbone).smallest


def gives_depths(name: str) -> bool:
    """Whether a backbone gives maps of earlier depths beside its features; builds nothing."""
    return BACKBONES.get(name, Backbone).with_depths is not Backbone.with_depths


load_plugins()  # last, as they import this package
