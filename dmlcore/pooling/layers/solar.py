"""Second-order spatial attention (SOLAR) before generalized-mean pooling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import torch.nn.functional as F
from torch import Tensor, nn

from dmlcore.catalogue import Slider
from dmlcore.pooling.base import Pooling, init_he_, pooling
from dmlcore.pooling.layers.gem import GeneralizedMeanPooling


@pooling(
    "solar",
    title="Self-attention (SOLAR)",
    latex=r"g=\mathrm{GeM}\big(f+\psi(\mathrm{softmax}(qk^\top/\sqrt d)\,v)\big)",
    source="Ng, Balntas, Tian & Mikolajczyk, ECCV 2020",
)
class SelfAttentionPooling(Pooling):
    """Self-attention between local features, followed by the generalized mean (GeM).

    psi is initialised to 0, so the untrained layer equals GeM. `weights` is None, because each attended feature is a
    mixture of all positions.
    """

    batch_statistics = True
    # attention of queries, keys and values (B, n, d), replaced for export
    attend: Callable[[Tensor, Tensor, Tensor], Tensor] = staticmethod(F.scaled_dot_product_attention)

    def __init__(
        self,
        channels: int,
        reduction: Annotated[
            int, Slider(1, 16, "r", "queries, keys and values have C / r channels", step=1, above=0)
        ] = 1,
        p: Annotated[float, Slider(1.0, 10.0, "p", "initial exponent of the mean", above=0.0)] = 3.0,
    ) -> None:
        super().__init__(channels)
        d = max(1, channels // reduction)
        self.query = nn.Sequential(init_he_(nn.Conv2d(channels, d, 1)), nn.BatchNorm2d(d), nn.ReLU())
        self.key = nn.Sequential(init_he_(nn.Conv2d(channels, d, 1)), nn.BatchNorm2d(d), nn.ReLU())
        self.value = init_he_(nn.Conv2d(channels, d, 1))
        self.psi = nn.Conv2d(d, channels, 1)
        nn.init.zeros_(self.psi.weight)
        nn.init.zeros_(self.psi.bias)  # type: ignore[arg-type]  # it has one
        self.gem = GeneralizedMeanPooling(channels, p)

    def forward(self, features: Tensor) -> Tensor:
        """Pool features (B, C, H, W) to (B, C)."""
        self.check(features)
        q, k, v = (layer(features).flatten(2).mT for layer in (self.query, self.key, self.value))
        mixed = self.attend(q, k, v).mT
        pooled: Tensor = self.gem(features + self.psi(mixed.unflatten(2, features.shape[2:])))
        return pooled
