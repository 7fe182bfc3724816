"""Base class and catalogue of poolings, their creation by name, and the head that embeds features with any pooling."""

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


def names() -> list[str]:
    """Return the names of all poolings.

    Example:
        >>> from dmlcore import pooling
        >>> pooling.names()[:4]
        ['gap', 'gmp', 'gap_gmp', 'gem']
    """
    return list(POOLINGS)


def describe(name: str) -> PoolingInfo:
    """Return the catalogue entry of a pooling: title, LaTeX, source and parameters.

    Args:
        name: Name of a pooling.

    Raises:
        KeyError: If the name is unknown; the message lists the known names.
    """
    return POOLINGS[name]


def create(name: str, channels: int, **parameters: Any) -> Pooling:
    """Create a pooling as a module, for any height and width.

    Args:
        name: Name of a pooling.
        channels: Number of channels C of the features.
        parameters: Parameters of the pooling.

    Returns:
        Module that maps features (B, C, H, W), float32 or float64, to (B, out_features).

    Raises:
        KeyError: If the name is unknown.
        TypeError: If the pooling has no such parameter, or a value has a wrong type.
        ValueError: If a value is invalid.

    Example:
        >>> import torch
        >>> from dmlcore import pooling
        >>> pooling.create("gmp", channels=2)(torch.arange(8.0).view(1, 2, 2, 2))
        tensor([[3., 7.]])

    Reference:
        `describe(name).source` cites the source of each pooling.
    """
    info = describe(name)
    layer: Callable[..., Pooling] = info.layer
    return layer(channels, **info.complete(parameters))


class EmbeddingLayer(nn.Linear):
    """Linear layer that produces embeddings, with He initialisation (fan in) and zero bias.

    If `keeps_input` is True, the input of the last forward pass is stored as `last_input`, for a loss that reads it.
    """

    keeps_input: bool = False
    last_input: Tensor | None = None

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__(in_features, out_features)
        init_he_(self)

    def forward(self, features: Tensor) -> Tensor:
        """Map features (..., in_features) to embeddings (..., out_features)."""
        if self.keeps_input:
            self.last_input = features
        return super().forward(features)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for copying and pickling, without `last_input`, which may hold a graph."""
        return {key: value for key, value in self.__dict__.items() if key != "last_input"}


class EmbeddingHead(nn.Module):
    """Head that maps features (B, C, H, W) of a backbone to embeddings (B, embedding_dim), not normalised.

    If the pooling works on embedded features (`projects_first`), the 1 x 1 convolution `projection` without bias comes
    before the pooling; otherwise the layer `linear` comes after it. Both use He initialisation; the bias of `linear` is
    initialised to 0. `pooling` is the pooling module.

    Args:
        name: Name of the pooling.
        channels: Number of channels C of the features.
        embedding_dim: Dimension of the embeddings.
        dropout: Probability of dropping an input element of `projection` or `linear` in training.
        parameters: Parameters of the pooling.

    Raises:
        KeyError, TypeError, ValueError: As `create`.

    Reference:
        Gurbuz 2022, Sec. 5.3.
    """

    def __init__(
        self, name: str, channels: int, embedding_dim: int, *, dropout: float = 0.0, **parameters: Any
    ) -> None:
        super().__init__()
        self.name, self.dropout = name, nn.Dropout(dropout)
        require_int("channels", channels)
        require_int("embedding_dim", embedding_dim)
        self.projection: nn.Conv2d | None = None
        self.linear: EmbeddingLayer | None = None
        if describe(name).layer.projects_first:
            self.projection = init_he_(nn.Conv2d(channels, embedding_dim, 1, bias=False))
            self.pooling = create(name, embedding_dim, **parameters)
        else:
            self.pooling = create(name, channels, **parameters)
            self.linear = EmbeddingLayer(self.pooling.out_features, embedding_dim)

    def forward(self, features: Tensor) -> Tensor:
        """Map features (B, C, H, W) to embeddings (B, embedding_dim)."""
        if self.projection is not None:
            features = self.projection(self.dropout(features))
        pooled = pool(self.pooling, features)
        return pooled if self.linear is None else self.linear(self.dropout(pooled))

    def local(self, features: Tensor) -> Tensor | None:
        """Return local features (B, H*W, embedding_dim) in the embedding space, or None if they are not defined.

        For average and generalized sum pooling, the embedding is the mean of the local features with weights
        `pooling.weights`. For other poolings with `projects_first`, each channel of the embedding is pooled from the
        same channel of the local features.

        Args:
            features: Shape (B, C, H, W).
        """
        embeddings: Tensor | None = None
        if self.projection is not None:
            embeddings = self.projection(features).flatten(2).mT
        elif self.linear is not None and self.pooling.averages:
            embeddings = self.linear(features.flatten(2).mT)
        return embeddings
