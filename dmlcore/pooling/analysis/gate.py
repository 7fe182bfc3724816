"""What the transport does with one map of features, number by number: weights, plan, gate, limits, convergence."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from dmlcore.pooling import prototype_costs
from dmlcore.pooling.analysis.convergence import bias_errors, contraction, steps_below, sweep_biases
from dmlcore.pooling.transport import newton_biases, pooling_weights, selection, transport

MOST_SWEEPS = 5000  # counted before giving up on 1e-6


@dataclass(frozen=True)
class Gate:
    """The exact transport of features (n, D) to prototypes (m, D), float64: everything that a figure of it shows.

    bias: a*, None at mu = 1, where every gate is open. Raises what `transport` raises. Source: Gurbuz 2022, ch. 5.
    """

    features: Tensor
    prototypes: Tensor
    mu: float
    epsilon: float
    cost: Tensor  # (m, n)
    soft_min: Tensor  # (n,) l_j = logsumexp_i(-epsilon c_ij)
    rho: Tensor  # (n,)
    pi: Tensor  # (m, n)
    newton_biases: Tensor  # (steps + 1,) that Newton's method visits, the start first; none at mu = 1
    bias: float | None

    @classmethod
    def of(cls, features: Tensor, prototypes: Tensor, mu: float, epsilon: float) -> Gate:
        """Solve the problem of these features."""
        cost = prototype_costs(features, prototypes)
        rho, pi = transport(cost, mu, epsilon)
        soft_min = (-epsilon * cost).logsumexp(-2)
        visited = torch.cat(list(newton_biases(soft_min, mu))) if mu < 1 else soft_min[:0]
        bias = float(visited[-1]) if mu < 1 else None
        return cls(features, prototypes, mu, epsilon, cost, soft_min, rho, pi, visited, bias)

    @property
    def weights(self) -> Tensor:
        """(3, n): of the linear programme, the smoothed problem and the average."""
        smoothed = pooling_weights(self.rho, self.mu)
        return torch.stack([selection(self.cost, self.mu), smoothed, torch.full_like(smoothed, 1 / len(smoothed))])

    @property
    def marginals(self) -> Tensor:
        """z (m,), the share of the transported mass that each prototype receives."""
        return self.pi.sum(-1) / self.mu

    @property
    def threshold(self) -> float:
        """The largest distance to the nearest prototype at which the linear programme still takes a feature."""
        return float(self.cost.amin(-2)[selection(self.cost, self.mu) > 0].max())

    def open_at(self, features: Tensor) -> Tensor:
        """The gate (...,) that features (..., D) would meet, with the bias as it is."""
        cost = prototype_costs(features, self.prototypes)
        soft_min = (-self.epsilon * cost).logsumexp(-2)
        return torch.ones_like(soft_min) if self.bias is None else torch.sigmoid(self.bias + soft_min)

    def mean_gate(self, bias: Tensor) -> Tensor:
        """mean_j sigmoid(a + l_j) of biases a (...,): it is mu at a*."""
        return torch.sigmoid(bias[..., None] + self.soft_min).mean(-1)

    def weights_over(self, epsilons: Tensor) -> Tensor:
        """Smoothed weights (E, n) for each of epsilons (E,), the rest as it is."""
        rho, _ = transport(epsilons[:, None, None] * self.cost, self.mu, 1.0)
        return pooling_weights(rho, self.mu)

    def contraction(self) -> tuple[float, float]:
        """(k, r), as in `convergence.contraction`."""
        k, r = contraction(self.rho, self.mu)
        return float(k), float(r)

    def sweep_biases(self, count: int) -> Tensor:
        """The biases that `count` published sweeps visit, from 0."""
        return sweep_biases(self.soft_min, self.mu, count)

    def sweep_errors(self, biases: Tensor) -> Tensor:
        """Errors (K,) after each of the sweeps that visited biases (K + 1,)."""
        return bias_errors(self.cost, self.rho, self.epsilon, biases[:-1], biases[1:])

    def newton_errors(self) -> Tensor:
        """Errors (steps + 1,) of Newton's iterates, the start first."""
        return bias_errors(self.cost, self.rho, self.epsilon, self.newton_biases, self.newton_biases)

    def sweeps_needed(self, tolerance: float = 1e-6) -> int | None:
        """Published sweeps until the error stays below `tolerance`; None if MOST_SWEEPS do not suffice."""
        _, r = self.contraction()
        if r == 1 or math.log(tolerance) / math.log(r) > 2 * MOST_SWEEPS:
            return None
        for count in (64, 512, MOST_SWEEPS):
            steps = steps_below(self.sweep_errors(self.sweep_biases(count)), tolerance)
            if steps is not None:
                break
        return steps
