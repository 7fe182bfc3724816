"""What all poolings share: their shape contract, their weights for display, and how one enters the catalogue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor, nn

from dmlcore.catalogue import Catalogue, Entry, Values, declared


class Pooling(nn.Module):
    """(B, C, H, W) -> (B, out_features), any H, W >= 1, float32 or float64.

    After a forward pass `weights` (B, H*W) holds the share of each position in the pooled vector, for display:
    detached, >= 0, rows that sum to 1 (to 0 where nothing is pooled); where channels weigh positions differently, the
    mean over the channels. It is None where the pooled vector is no such sum over positions.
    """

    projects_first: ClassVar[bool] = False  # the map to the embedding size comes before the pooling, not after
    averages: ClassVar[bool] = False  # pooled = sum_j weights_j f_j, exactly
    positional: ClassVar[bool] = False  # which positions are neighbours matters
    stops_gradient: ClassVar[bool] = False  # the weights count as constants
    batch_statistics: ClassVar[bool] = False  # training normalises over the batch, evaluation by running statistics

    weights: Tensor | None

    def __init__(self, channels: int, out_features: int | None = None) -> None:
        super().__init__()
        self.channels = require_int("channels", channels)
        self.out_features = out_features or channels
        self.weights = None

    def check(self, features: Tensor) -> None:
        """Raise ValueError unless features have shape (B, channels, H, W) with H, W >= 1."""
        if features.ndim != 4 or features.shape[1] != self.channels or 0 in features.shape[2:]:
            raise ValueError(f"features must have shape (B, {self.channels}, H, W), got {tuple(features.shape)}")

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles hold no graph of the last batch."""
        return {k: v.detach() if k in ("weights", "shares") and v is not None else v for k, v in self.__dict__.items()}


@dataclass(frozen=True, kw_only=True)
class PoolingInfo(Entry):
    """A pooling of the catalogue: also its formula in LaTeX and its layer, called with the channels."""

    latex: str
    layer: type[Pooling]


POOLINGS: Catalogue[PoolingInfo] = Catalogue("pooling")
Layer = TypeVar("Layer", bound=Pooling)
Initialised = TypeVar("Initialised", nn.Linear, nn.Conv1d, nn.Conv2d)


def pooling(
    name: str, *, title: str, latex: str, source: str, rule: Callable[[Values], str] | None = None
) -> Callable[[type[Layer]], type[Layer]]:
    """Enter a Pooling into the catalogue; its constructor's parameters are `Annotated` with a Slider or Choice.

    rule: as of `catalogue.Entry`.
    """

    def enter(layer: type[Layer]) -> type[Layer]:
        layer.__doc__ = f"{layer.__doc__}\n    Formula: {latex}\n    Source: {source}\n    "
        info = PoolingInfo(
            name=name, title=title, latex=latex, source=source, layer=layer, rule=rule, **declared(layer)
        )
        POOLINGS.enter(name, info)
        return layer

    return enter


def pool(layer: nn.Module, features: Tensor) -> Tensor:
    """layer(features) in float32 or float64, outside autocast: (B, C, H, W) -> (B, out_features).

    Transports, prototype costs and powers lose in bfloat16 the digits that decide, and have no backward in it.
    """
    with torch.autocast(features.device.type, enabled=False):
        pooled: Tensor = layer(at_least_float32(features))
    return pooled


def at_least_float32(tensor: Tensor) -> Tensor:
    """The tensor in float32, or as it is in float64."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()


def require_int(name: str, value: object, least: int = 1, most: int = 65_536) -> int:
    """`value` if it is an integer from `least` to `most`, as weights have its size; else ValueError naming it."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
    if value > most:
        raise ValueError(f"{name} must be {most:,} at most, got {value:,}")
    return value


def init_he_(layer: Initialised) -> Initialised:
    """The layer with He's initialisation (fan in) and zero bias."""
    nn.init.kaiming_normal_(layer.weight)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


def proportions(amounts: Tensor) -> Tensor:
    """amounts / their sum over the last dimension, detached; zeros stay zeros."""
    amounts = amounts.detach()
    return amounts / amounts.sum(-1, keepdim=True).clamp(min=torch.finfo(amounts.dtype).tiny)


def winners(features: Tensor, largest: Tensor) -> Tensor:
    """Share (B, H*W) of the channels whose maximum `largest` (B, C) lies at each position; ties share."""
    return proportions((features.detach().flatten(2) == largest.detach()[..., None]).to(largest.dtype)).mean(1)
