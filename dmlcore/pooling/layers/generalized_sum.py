"""Generalized sum pooling, in which learned prototypes select the local features that enter the pooled vector."""

from __future__ import annotations

from typing import Annotated

import torch
from torch import Tensor, nn

from dmlcore import processes
from dmlcore.catalogue import Slider, Values
from dmlcore.geometry import k_center
from dmlcore.pooling.base import POOLINGS, Pooling, pooling
from dmlcore.pooling.costs import clip_to_unit_ball, prototype_costs
from dmlcore.pooling.transport import pooling_weights, transport

__all__ = ["GeneralizedSumPooling", "clip_to_unit_ball", "prototype_costs"]


def check_memory(values: Values) -> str:
    """Return an error message unless `memory` is 0 or at least twice the number of prototypes, otherwise ""."""
    wanted, memory = 2 * values["prototypes"], values["memory"]
    fits = memory == 0 or memory >= wanted
    return "" if fits else f"memory must hold at least 2 x prototypes = {wanted} vectors, or be 0; got {memory}"


@pooling(
    "gsp",
    title="Generalized sum (GSP)",
    latex=r"g=\sum_jp_jf_j,\quad p_j=\frac{\sigma(a+l_j)}{n\mu},\ l_j=\log\sum_ie^{-\varepsilon c_{ij}},"
    r"\quad a:\ \frac1n\sum_j\sigma(a+l_j)=\mu",
    source="Gürbüz 2022, ch. 5",
    rule=check_memory,
)
class GeneralizedSumPooling(Pooling):
    """Weighted sum of local features, with weights from the exact entropic transport of mass mu to learned prototypes.

    The prototypes (m, C) are initialised from the data by greedy k-centre: the layer is average pooling until `memory`
    pooled vectors (plain averages, projected onto the unit ball) have been collected in training. The first m of them
    serve as existing centres; of the others, the m farthest-first choices become the prototypes.

    After a forward pass, `weights` (B, H*W), detached, holds the weights of that batch. `shares` (B, m) holds its
    prototype marginals z, which sum to 1 and are differentiable. Features (B, C, H, W) are mapped to (B, C).

    Args:
        channels: Number of channels C.
        prototypes: Number of prototypes m.
        mu: Share of the features that is pooled, in (0, 1].
        epsilon: Inverse temperature; large values approach a hard selection.
        memory: Number of pooled vectors to collect before the prototypes are initialised; 0 skips the collection and
            keeps the random initialisation.
        warmup: Number of first batches that are not collected, because features are still random.

    Raises:
        ValueError: If an argument is invalid; the message names it.

    Example:
        >>> import torch
        >>> from dmlcore import pooling
        >>> layer = pooling.GeneralizedSumPooling(3, prototypes=2, mu=0.5, memory=0)
        >>> layer(torch.rand(5, 3, 4, 4)).shape
        torch.Size([5, 3])
        >>> layer.weights.sum(1).round(decimals=3)
        tensor([1., 1., 1., 1., 1.])
    """

    projects_first = True
    averages = True

    weights: Tensor
    shares: Tensor
    memory: Tensor
    ready: Tensor
    seen: Tensor
    to_skip: Tensor

    def __init__(
        self,
        channels: int,
        prototypes: Annotated[int, Slider(1, 256, "m", "learned prototypes", step=1, above=0)] = 64,
        mu: Annotated[
            float, Slider(0.02, 1.0, r"\mu", "share of the features that is pooled", above=0.0, most=1.0)
        ] = 0.3,
        epsilon: Annotated[
            float, Slider(0.1, 200.0, r"\varepsilon", "inverse temperature: large selects hard", log=True, above=0.0)
        ] = 5.0,
        *,
        memory: Annotated[
            int,
            Slider(
                0,
                4096,
                "M",
                "pooled vectors collected before the prototypes are initialised; 0: random initialisation",
                step=1,
                least=0,
            ),
        ] = 1024,
        warmup: Annotated[int, Slider(0, 1000, "w", "first batches that are not collected", step=1, least=0)] = 0,
    ) -> None:
        super().__init__(channels)
        given = {"prototypes": prototypes, "mu": mu, "epsilon": epsilon, "memory": memory, "warmup": warmup}
        prototypes, self.mu, self.epsilon, memory, warmup = POOLINGS["gsp"].complete(given).values()
        self.prototypes = nn.Parameter(nn.init.xavier_uniform_(torch.empty(prototypes, channels)))
        self.register_buffer("memory", torch.zeros(memory, channels))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))
        self.register_buffer("to_skip", torch.tensor(warmup))
        self.register_buffer("ready", torch.tensor(memory == 0))
        self.weights = self.shares = torch.empty(0)

    def forward(self, features: Tensor) -> Tensor:
        """Pool features (B, C, H, W) of any size to (B, C)."""
        self.check(features)
        F = features.flatten(2)  # (B, C, n)
        if not self.ready:
            if self.training:
                self._remember(processes.gather(F.detach().mean(2)))
            if not self.ready:
                self.weights = F.new_full((F.shape[0], F.shape[2]), 1 / F.shape[2])
                self.shares = F.new_full((F.shape[0], len(self.prototypes)), 1 / len(self.prototypes))
                return F.mean(2)
        rho, pi = transport(prototype_costs(F.mT, self.prototypes), self.mu, self.epsilon)
        weights = pooling_weights(rho, self.mu)
        self.weights, self.shares = weights.detach(), pi.sum(-1) / self.mu
        return (F @ weights[..., None])[..., 0]

    def extra_repr(self) -> str:
        """Return the sizes and parameters to show in `repr`."""
        m, channels = self.prototypes.shape
        return f"channels={channels}, prototypes={m}, mu={self.mu}, epsilon={self.epsilon}, memory={len(self.memory)}"

    @torch.no_grad()
    def _remember(self, pooled: Tensor) -> None:
        if self.to_skip > 0:
            self.to_skip -= 1
            return
        free = len(self.memory) - int(self.seen)
        self.memory[int(self.seen) : int(self.seen) + len(pooled)] = clip_to_unit_ball(pooled)[:free]
        self.seen += min(len(pooled), free)
        if int(self.seen) == len(self.memory):
            m = len(self.prototypes)
            rest = self.memory[m:]
            self.prototypes.copy_(rest[torch.as_tensor(k_center(rest.cpu(), self.memory[:m].cpu(), m))])
            self.ready.fill_(True)
