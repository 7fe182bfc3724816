"""Attentive pooling of deep local features (DeLF)."""

from __future__ import annotations

from typing import Annotated

from torch import Tensor, nn

from dmlcore.catalogue import Slider
from dmlcore.pooling.base import Pooling, init_he_, normalise_shares, pooling


@pooling(
    "delf",
    title="Attentive local features (DeLF)",
    latex=r"g=\frac1n\sum_j\alpha_jf_j,\quad\alpha_j=\mathrm{softplus}(w_2^\top[W_1f_j]_+)",
    source="Noh, Araujo, Sim, Weyand & Han, ICCV 2017",
)
class AttentiveLocalFeatures(Pooling):
    """Mean of the features, each multiplied by a learned positive score. `weights` holds the normalised scores."""

    def __init__(
        self,
        channels: int,
        hidden: Annotated[int, Slider(16, 1024, "h", "hidden units of the score", step=1, above=0)] = 512,
    ) -> None:
        super().__init__(channels)
        self.attention = nn.Sequential(
            init_he_(nn.Conv2d(channels, hidden, 1)),
            nn.ReLU(),
            init_he_(nn.Conv2d(hidden, 1, 1)),
            nn.Softplus(),
        )

    def forward(self, features: Tensor) -> Tensor:
        """Pool features (B, C, H, W) to (B, C)."""
        self.check(features)
        alpha = self.attention(features).flatten(1)
        self.weights = normalise_shares(alpha)
        pooled: Tensor = (features.flatten(2) @ alpha[..., None])[..., 0] / alpha.shape[1]
        return pooled
