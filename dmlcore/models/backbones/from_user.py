"""Adapter that turns a network of the user, named package.module:factory, into a backbone."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from dmlcore.models.backbones.base import Backbone, Normalisation
from dmlcore.spec import own_network


class OwnBackbone(Backbone):
    """Backbone made by a function or class of the user, with the parameter names of the user's module.

    The module maps normalised images (B, 3, H, W) to features (B, C, h, w), or to embeddings (B, C), which become
    features (B, C, 1, 1). C is determined by a forward pass of two images of zeros in evaluation mode. Images are
    normalised by the mean and standard deviation of ImageNet, unless the module has an attribute `normalisation`.

    Args:
        name: Name as package.module:factory.
        options: Keyword arguments of the factory.
        image: (H, W) of the images.

    Raises:
        ImportError: If importing the module is not permitted or fails.
        ValueError: If the factory raises an exception or does not return such a module.
    """

    key_prefix = "network."
    smallest = 1

    def __init__(self, name: str, options: Mapping[str, Any], image: tuple[int, int]) -> None:
        super().__init__()
        factory = _import(name)
        try:
            network = factory(**options)
        except Exception as error:
            raise ValueError(f"{name} failed: {_describe_error(error)}; correct it, or model.options") from error
        if not isinstance(network, nn.Module):
            raise ValueError(f"{name} returned {_describe_type(network)}; return an instance of torch.nn.Module")
        self.name, self.network = name, network
        self.normalisation = getattr(network, "normalisation", Backbone.normalisation)
        if not isinstance(self.normalisation, Normalisation):
            raise ValueError(
                f"{name}: its attribute normalisation is {_describe_type(self.normalisation)}; set it to a "
                "dmlcore.models.backbones.Normalisation"
            )
        self.out_channels = self._count_channels(image)

    def keep_classifier(self) -> nn.Linear:
        """Raise ValueError, because it is not known which layer of the module is its classifier."""
        raise ValueError(f"{self.name} has no known classifier; choose model.keep_classifier=false")

    def without_place(self) -> tuple[str, ...]:
        """Return no prefixes, because a file of weights must match the module exactly."""
        return ()

    def forward(self, images: Tensor) -> Tensor:
        """Return the features (B, out_channels, h, w) of images (B, 3, H, W)."""
        maps: Tensor = self.network(images)
        return maps if maps.ndim == 4 else maps[..., None, None]

    @torch.no_grad()
    def _count_channels(self, image: tuple[int, int]) -> int:
        """Return the number of output channels for images of this size; raise ValueError for a wrong output."""
        training = self.network.training
        zeros = torch.zeros(2, 3, *image)
        try:
            given = self.network.eval()(zeros)
        except Exception as error:
            raise ValueError(
                f"{self.name} cannot process images of shape {tuple(zeros.shape)}: {_describe_error(error)}"
            ) from error
        finally:
            self.network.train(training)
        expected = "features (2, C, h, w) or embeddings (2, C) of a floating-point type"
        if not isinstance(given, Tensor):
            raise ValueError(f"{self.name} returns {_describe_type(given)} for two images; expected {expected}")
        fits = given.ndim in (2, 4) and given.shape[0] == 2 and given.numel() and given.is_floating_point()
        if not fits:
            raise ValueError(
                f"{self.name} returns {given.dtype} of shape {tuple(given.shape)} for images of shape "
                f"{tuple(zeros.shape)}; expected {expected}"
            )
        return int(given.shape[1])


def _import(name: str) -> Callable[..., Any]:
    """Import the factory `name`; raise ImportError, with the reason and a remedy, if that is not permitted or fails."""
    if reason := own_network.refusal(name):
        raise ImportError(reason)
    own_network.make_importable()
    module, _, attribute = name.partition(":")
    try:
        imported = importlib.import_module(module)
    except Exception as error:
        missing = isinstance(error, ModuleNotFoundError) and module.startswith(str(error.name))
        remedy = "run the command in the folder that contains it, or put that folder on PYTHONPATH"
        raise ImportError(
            f"{module} cannot be imported: {_describe_error(error)}{f'; {remedy}' if missing else ''}"
        ) from error
    factory: Any = getattr(imported, attribute, None)
    if not callable(factory):
        known = ", ".join(key for key, value in vars(imported).items() if callable(value) and key[0] != "_")
        raise ImportError(f"{module} has no function or class {attribute!r}; it has: {known[:200] or 'none'}")
    return factory  # type: ignore[no-any-return]


def _describe_error(error: Exception) -> str:
    """Return the type of an exception and the first line of its message."""
    return f"{type(error).__name__}: {error}".partition("\n")[0][:500]


def _describe_type(value: object) -> str:
    kind = type(value)
    return (
        "None" if value is None else f"the class {value.__name__}" if isinstance(value, type) else f"a {kind.__name__}"
    )
