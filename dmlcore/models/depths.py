"""Features from several depths of a backbone combined in one vector, averaged or weighted by attention (GDFL)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dmlcore import pooling
from dmlcore.spec import PoolingSpec

GATHERS = ("none", "mean", "attention")


class GatheredFeatures(nn.Module):
    """Concatenation phi = [u, p_1, ...] of pooled last features u (B, l) and one vector (B, C_i) per earlier map.

    Without attention, p_i is the mean of map i. With attention, p_i = sum_j a_j q_j, where q_j is the feature at
    position j of the map and a = softmax_j(w_i^T tanh(W_i q_j + u)), with W_i of shape (l, C_i). The attribute
    `weights` holds the attention weights a for the last batch as one detached tensor (B, h, w) per map.

    Reference:
        Zabihzadeh, Alitbi & Mousavirad 2021, Eq. 6. The paper does not specify soft-max, tanh and concatenation; they
        are our choice.
    """

    def __init__(self, last: int, earlier: Sequence[int], *, attention: bool) -> None:
        super().__init__()
        self.out_features = last + sum(earlier)
        self.keys, self.queries = nn.ModuleList(), nn.ModuleList()
        self.weights: list[Tensor] = []
        for channels in earlier if attention else ():
            self.keys.append(nn.Linear(channels, last, bias=False))
            self.queries.append(nn.Linear(last, 1, bias=False))

    def forward(self, last: Tensor, earlier: Sequence[Tensor]) -> Tensor:
        """Return the vector phi (B, out_features) for pooled features (B, l) and earlier maps (B, C_i, h_i, w_i)."""
        if not self.keys:
            return torch.cat([last, *(maps.mean((2, 3)) for maps in earlier)], dim=1)
        parts, self.weights = [last], []
        for maps, key, query in zip(earlier, self.keys, self.queries, strict=True):
            positions = maps.flatten(2).mT
            attention = query(torch.tanh(key(positions) + last[:, None])).softmax(1)
            self.weights.append(attention.detach()[..., 0].unflatten(1, maps.shape[2:]))
            parts.append((attention * positions).sum(1))
        return torch.cat(parts, dim=1)


class GatheringHead(nn.Module):
    """Head that maps the last features (B, C, H, W) and the maps in `earlier` to embeddings (B, embedding_dim).

    The last features are pooled, `GatheredFeatures` adds the earlier maps, and a linear layer embeds the result. The
    network stores the earlier maps in this module before each call. `forward` removes them, so that no autograd graph
    outlives its batch. Raises ValueError for a pooling that projects the features before pooling, because its result is
    then not a feature of the backbone.
    """

    def __init__(
        self, pool: PoolingSpec, channels: int, depths: Sequence[int], embedding_dim: int, gather: str, dropout: float
    ) -> None:
        super().__init__()
        self.name = pool.name
        self.pooling = pooling.create(pool.name, channels, **pool.parameters)
        if self.pooling.projects_first:
            raise ValueError(f"{pool.name} works on embedded features; choose pooling.name=gap or model.gather=none")
        self.gathered = GatheredFeatures(self.pooling.out_features, depths, attention=gather == "attention")
        self.dropout = nn.Dropout(dropout)
        self.linear = pooling.EmbeddingLayer(self.gathered.out_features, embedding_dim)
        self.earlier: tuple[Tensor, ...] = ()

    def forward(self, features: Tensor) -> Tensor:
        """Return the embeddings, not normalised."""
        if not self.earlier:
            raise ValueError(
                "features of earlier depths are missing; compute them with the network from the same images"
            )
        earlier, self.earlier = self.earlier, ()
        embeddings: Tensor = self.linear(self.dropout(self.gathered(pooling.pool(self.pooling, features), earlier)))
        return embeddings

    def local(self, features: Tensor) -> Tensor | None:
        """Return None, because local features are not in the space of the embeddings."""
        return None
