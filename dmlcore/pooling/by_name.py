"""The poolings by name, and the head that turns a backbone's features into embeddings with any of them."""

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
    """Every pooling of the catalogue.

    Example:
        >>> from dmlcore import pooling
        >>> pooling.names()[:4]
        ['gap', 'gmp', 'gap_gmp', 'gem']
    """
    return list(POOLINGS)


def describe(name: str) -> PoolingInfo:
    """Title, LaTeX, source and parameters of a pooling; KeyError lists the known names."""
    return POOLINGS[name]


def create(name: str, channels: int, **parameters: Any) -> Pooling:
    """The pooling as a module, for any height and width.

    Shapes: (B, channels, H, W) -> (B, out_features), float32 or float64.
    Raises: KeyError for an unknown name, TypeError for an unknown parameter, ValueError or TypeError for an invalid
    value, each naming the culprit.
    Source: that of each pooling, `describe(name).source`.

    Example:
        >>> import torch
        >>> from dmlcore import pooling
        >>> pooling.create("gmp", channels=2)(torch.arange(8.0).view(1, 2, 2, 2))
        tensor([[3., 7.]])
    """
    info = describe(name)
    layer: Callable[..., Pooling] = info.layer
    return layer(channels, **info.complete(parameters))


class EmbeddingLayer(nn.Linear):
    """The linear layer that makes embeddings; with `keeps` it holds what it took last as `taken`, for a loss of that.

    He initialisation (fan in), zero bias.
    """

    keeps: bool = False
    taken: Tensor | None = None

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__(in_features, out_features)
        init_he_(self)

    def forward(self, features: Tensor) -> Tensor:
        """features (..., in_features) -> (..., out_features)."""
        if self.keeps:
            self.taken = features
        return super().forward(features)

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles hold no graph of the last batch."""
        return {key: value for key, value in self.__dict__.items() if key != "taken"}


class EmbeddingHead(nn.Module):
    """A backbone's features (B, C, H, W) -> embeddings (B, embedding_dim), not normalised, with any pooling.

    The 1 x 1 convolution `projection` (no bias) comes first where the pooling works on embedded features (its
    `projects_first`); elsewhere the layer `linear` comes after the pooling. He initialisation, zero bias. `pooling` is
    the pooling module. dropout: share of what enters that layer that is dropped in training. Raises as `create`.
    Source: Gurbuz 2022, Sec. 5.3.
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
        """features (B, C, H, W) -> (B, embedding_dim)."""
        if self.projection is not None:
            features = self.projection(self.dropout(features))
        pooled = pool(self.pooling, features)
        return pooled if self.linear is None else self.linear(self.dropout(pooled))

    def local(self, features: Tensor) -> Tensor | None:
        """Local features (B, H*W, embedding_dim) in the space of the embeddings, or None where they have none there.

        Of average and generalized sum pooling the embedding is their mean with `pooling.weights`; of the other poolings
        that project first it is made of their values, channel by channel.
        """
        embeddings: Tensor | None = None
        if self.projection is not None:
            embeddings = self.projection(features).flatten(2).mT
        elif self.linear is not None and self.pooling.averages:
            embeddings = self.linear(features.flatten(2).mT)
        return embeddings
