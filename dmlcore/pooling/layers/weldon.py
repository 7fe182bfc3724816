"""WELDON, which sums the largest and the smallest values of each channel."""

from __future__ import annotations

from typing import Annotated

from torch import Tensor

from dmlcore.catalogue import Slider
from dmlcore.pooling.base import Pooling, pooling


@pooling(
    "weldon",
    title="Largest and smallest (WELDON)",
    latex=r"g_k=\sum_{j\in\mathrm{top}_K(f_k)}f_{jk}+\sum_{j\in\mathrm{bottom}_K(f_k)}f_{jk}",
    source="Durand, Thome & Cord, CVPR 2016",
)
class Weldon(Pooling):
    """Sum of the K largest and the K smallest values of each projected channel.

    K is limited to the number of positions n. `weights` is None, because the positions that are summed differ between
    channels, and a value is counted twice if it is among both the largest and the smallest.
    """

    projects_first = True

    def __init__(
        self,
        channels: int,
        count: Annotated[int, Slider(1, 10, "K", "number of largest and of smallest values", step=1, above=0)] = 3,
    ) -> None:
        super().__init__(channels)
        self.count = count

    def forward(self, features: Tensor) -> Tensor:
        """Pool features (B, C, H, W) to (B, C)."""
        self.check(features)
        local = features.flatten(2)
        k = min(self.count, local.shape[2])
        return local.topk(k, sorted=False).values.sum(-1) + local.topk(k, largest=False, sorted=False).values.sum(-1)
