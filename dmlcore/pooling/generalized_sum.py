"""Generalized sum pooling: learned prototypes select which local features enter the pooled vector."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dmlcore.geometry import k_center
from dmlcore.pooling.transport import check_transport, pooling_weights, transport


def lip(v: Tensor) -> Tensor:
    """v / max(1, |v|), (..., D): the projection on the unit ball, 1-Lipschitz. Source: Gurbuz 2022, Sec. 5.2."""
    length: Tensor = torch.linalg.vector_norm(v, dim=-1, keepdim=True)
    return v / length.clamp(min=1.0)


def prototype_costs(features: Tensor, prototypes: Tensor) -> Tensor:
    """c_ij = |lip(omega_i) - lip(f_j)| in [0, 2]: features (..., n, D), prototypes (m, D) -> (..., m, n).

    Not squared; the gradient of a zero distance is 0.
    """
    return torch.cdist(lip(prototypes).expand(*features.shape[:-2], -1, -1), lip(features))


class GeneralizedSumPooling(nn.Module):
    """(B, C, H, W) -> (B, C): sum_j p_j f_j with weights p from the exact entropic transport of mass mu to prototypes.

    The prototypes (m, C) start as a k-centre of what passes by: until `memory` pooled vectors (of plain averages,
    projected on the unit ball) have been seen in training, the layer is average pooling; then the first m of them are
    the existing centres and the next m, farthest first, become the prototypes. `memory` = 0 starts at once from the
    given initialisation; the first `warmup` batches, when features are still at random, are not remembered. After a
    forward pass `weights` (B, H*W) and `shares` (B, m), the prototype marginals z that sum to 1, belong to that batch.
    Raises ValueError naming the argument. Source: Gurbuz 2022, ch. 5.
    """

    memory: Tensor
    ready: Tensor
    seen: Tensor
    to_skip: Tensor

    def __init__(
        self,
        channels: int,
        prototypes: int = 64,
        mu: float = 0.3,
        epsilon: float = 5.0,
        *,
        memory: int = 1024,
        warmup: int = 0,
    ) -> None:
        super().__init__()
        sizes = (("channels", channels, 1), ("prototypes", prototypes, 1), ("memory", memory, 0), ("warmup", warmup, 0))
        for name, value, least in sizes:
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
        if 0 < memory < 2 * prototypes:
            raise ValueError(
                f"memory must hold at least 2 x prototypes = {2 * prototypes} vectors, or be 0; got {memory}"
            )
        check_transport(torch.zeros(1, 1), mu, epsilon)
        self.mu, self.epsilon = mu, epsilon
        self.prototypes = nn.Parameter(nn.init.xavier_uniform_(torch.empty(prototypes, channels)))
        self.register_buffer("memory", torch.zeros(memory, channels))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))
        self.register_buffer("to_skip", torch.tensor(warmup))
        self.register_buffer("ready", torch.tensor(memory == 0))
        self.weights = self.shares = torch.empty(0)

    def forward(self, features: Tensor) -> Tensor:
        """features: local features of any size (B, C, H, W)."""
        channels = self.prototypes.shape[1]
        if features.ndim != 4 or features.shape[1] != channels:
            raise ValueError(f"features must have shape (B, {channels}, H, W), got {tuple(features.shape)}")
        local = features.flatten(2).mT  # (B, n, C)
        if not self.ready:
            if self.training:
                self._remember(local.detach().mean(1))
            if not self.ready:
                self.weights = local.new_full(local.shape[:2], 1 / local.shape[1])
                self.shares = local.new_full((len(local), len(self.prototypes)), 1 / len(self.prototypes))
                return local.mean(1)
        rho, pi = transport(prototype_costs(local, self.prototypes), self.mu, self.epsilon)
        self.weights, self.shares = pooling_weights(rho, self.mu), pi.sum(-1) / self.mu
        return (self.weights[..., None, :] @ local)[..., 0, :]

    def extra_repr(self) -> str:
        """Sizes and settings, for print."""
        m, channels = self.prototypes.shape
        return f"channels={channels}, prototypes={m}, mu={self.mu}, epsilon={self.epsilon}, memory={len(self.memory)}"

    @torch.no_grad()
    def _remember(self, pooled: Tensor) -> None:
        if self.to_skip > 0:
            self.to_skip -= 1
            return
        free = len(self.memory) - int(self.seen)
        self.memory[int(self.seen) : int(self.seen) + len(pooled)] = lip(pooled)[:free]
        self.seen += min(len(pooled), free)
        if int(self.seen) == len(self.memory):
            m = len(self.prototypes)
            rest = self.memory[m:]
            self.prototypes.copy_(rest[torch.as_tensor(k_center(rest.cpu(), self.memory[:m].cpu(), m))])
            self.ready.fill_(True)
