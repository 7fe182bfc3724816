"""Creation of poolings by name, and the head that maps backbone features to embeddings with any pooling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from dmlcore.catalogue import discover
from dmlcore.pooling.base import POOLINGS, Pooling, PoolingInfo, init_he_, pool, require_int

discover(
    "dmlcore.pooling.layers",
    first=(
        *("gap", "gmp", "gap_gmp", "gem", "gemax", "crow", "delf", "cbam", "gsop", "solar", "tsmk", "netvlad", "otp"),
        *("weldon", "generalized_sum", "gsp_gmp"),
    ),
)


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
