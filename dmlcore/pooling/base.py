"""Base class of poolings, helpers that compute their displayed weights, and the catalogue of poolings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor, nn

from dmlcore.catalogue import Catalogue, Entry, Values, declared


class Pooling(nn.Module):
    """Base class of poolings, which map features (B, C, H, W) with any H, W >= 1 to (B, out_features).

    After a forward pass, `weights` (B, H*W) holds the share of each position in the pooled vector, for display. It is
    detached and >= 0; its rows sum to 1, or to 0 if nothing is pooled. If the weights differ between channels,
    `weights` is their mean over the channels. It is None if the pooled vector is not a weighted sum over positions.
    """

    # True if the projection to the embedding size is applied before the pooling, not after it
    projects_first: ClassVar[bool] = False
    averages: ClassVar[bool] = False  # True if the pooled vector is exactly sum_j weights_j f_j
    positional: ClassVar[bool] = False  # True if the result depends on the arrangement of the positions
    stops_gradient: ClassVar[bool] = False  # True if the weights are detached in the forward pass
    # True if the layer contains batch normalisation, which uses batch statistics only in training
    batch_statistics: ClassVar[bool] = False

    weights: Tensor | None

    def __init__(self, channels: int, out_features: int | None = None) -> None:
        super().__init__()
        self.channels = require_int("channels", channels)
        self.out_features = out_features or channels
        self.weights = None

    def check(self, features: Tensor) -> None:
        """Check the shape of the features.

        Raises:
            ValueError: Unless features have shape (B, channels, H, W) with H, W >= 1.
        """
        if features.ndim != 4 or features.shape[1] != self.channels or 0 in features.shape[2:]:
            raise ValueError(f"features must have shape (B, {self.channels}, H, W), got {tuple(features.shape)}")

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for copying and pickling, with `weights` and `shares` detached from the graph."""
        return {k: v.detach() if k in ("weights", "shares") and v is not None else v for k, v in self.__dict__.items()}


@dataclass(frozen=True, kw_only=True)
class PoolingInfo(Entry):
    """Catalogue entry of a pooling. `latex` is its formula; the first argument of its class `layer` is `channels`."""

    latex: str
    layer: type[Pooling]


POOLINGS: Catalogue[PoolingInfo] = Catalogue("pooling")
Layer = TypeVar("Layer", bound=Pooling)
Initialised = TypeVar("Initialised", nn.Linear, nn.Conv1d, nn.Conv2d)


def pooling(
    name: str, *, title: str, latex: str, source: str, rule: Callable[[Values], str] | None = None
) -> Callable[[type[Layer]], type[Layer]]:
    """Register a subclass of Pooling in the catalogue and append formula and source to its docstring.

    The parameters of its constructor must be `Annotated` with a Slider or Choice. `rule` checks combinations of values,
    see `catalogue.Entry`.
    """

    def enter(layer: type[Layer]) -> type[Layer]:
        summary = (layer.__doc__ or "").rstrip()
        layer.__doc__ = f"{summary}\n\n    Formula:\n        {latex}\n\n    Reference:\n        {source}\n    "
        info = PoolingInfo(
            name=name, title=title, latex=latex, source=source, layer=layer, rule=rule, **declared(layer)
        )
        POOLINGS.enter(name, info)
        return layer

    return enter


def pool(layer: nn.Module, features: Tensor) -> Tensor:
    """Apply a pooling to features (B, C, H, W) in float32 or float64, with autocast disabled.

    In bfloat16, transports, prototype costs and powers would lose significant digits and have no backward pass.

    Args:
        layer: Pooling.
        features: Shape (B, C, H, W).

    Returns:
        Pooled features, shape (B, out_features).
    """
    with torch.autocast(features.device.type, enabled=False):
        pooled: Tensor = layer(at_least_float32(features))
    return pooled


def at_least_float32(tensor: Tensor) -> Tensor:
    """Return the tensor in float32, or unchanged if it is float64."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()


def require_int(name: str, value: object, least: int = 1, most: int = 65_536) -> int:
    """Return `value` if it is an integer from `least` to `most`, both inclusive.

    Raises:
        ValueError: If it is not; the message contains `name`.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
    if value > most:
        raise ValueError(f"{name} must be {most:,} at most, got {value:,}")
    return value


def init_he_(layer: Initialised) -> Initialised:
    """Initialise a layer in place with He's method (fan in) and zero bias, and return it."""
    nn.init.kaiming_normal_(layer.weight)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


def normalise_shares(amounts: Tensor) -> Tensor:
    """Divide amounts by their sum over the last dimension and detach the result; rows of zeros stay zeros."""
    amounts = amounts.detach()
    return amounts / amounts.sum(-1, keepdim=True).clamp(min=torch.finfo(amounts.dtype).tiny)


def maximum_shares(features: Tensor, largest: Tensor) -> Tensor:
    """Return the share of channels with their maximum at each position, shape (B, H*W).

    `largest` holds the maximum of each channel, shape (B, C). If several positions attain the maximum of a channel,
    they share that channel equally.
    """
    return normalise_shares((features.detach().flatten(2) == largest.detach()[..., None]).to(largest.dtype)).mean(1)
