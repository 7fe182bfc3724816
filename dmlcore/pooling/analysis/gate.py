"""Transport of the features of one map to prototypes: weights, plan, gate, limits and convergence."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from dmlcore.pooling import prototype_costs
from dmlcore.pooling.analysis.convergence import bias_errors, contraction, steps_below, sweep_biases
from dmlcore.pooling.transport import newton_biases, pooling_weights, selection, transport

MOST_SWEEPS = 5000  # maximum number of sweeps that `sweeps_needed` tries


@dataclass(frozen=True)
class Gate:
    """Exact transport of features (n, D) to prototypes (m, D), with the quantities that describe its gate.

    `bias` is the solution a*, or None at mu = 1, where every gate is open. `Gate.of` raises the same errors as
    `transport`.

    Reference:
        Gurbuz 2022, ch. 5.
    """

    features: Tensor
    prototypes: Tensor
    mu: float
    epsilon: float
    cost: Tensor  # (m, n)
    soft_min: Tensor  # (n,) l_j = logsumexp_i(-epsilon c_ij)
    rho: Tensor  # (n,)
    pi: Tensor  # (m, n)
    newton_biases: Tensor  # (steps + 1,) iterates of Newton's method including the start; empty at mu = 1
    bias: float | None

    @classmethod
    def of(cls, features: Tensor, prototypes: Tensor, mu: float, epsilon: float) -> Gate:
        """Solve the transport problem for these features and prototypes."""
        cost = prototype_costs(features, prototypes)
        rho, pi = transport(cost, mu, epsilon)
        soft_min = (-epsilon * cost).logsumexp(-2)
        visited = torch.cat(list(newton_biases(soft_min, mu))) if mu < 1 else soft_min[:0]
        bias = float(visited[-1]) if mu < 1 else None
        return cls(features, prototypes, mu, epsilon, cost, soft_min, rho, pi, visited, bias)

    @property
    def weights(self) -> Tensor:
        """Pooling weights (3, n) of the linear programme, of the smoothed problem and of average pooling."""
        smoothed = pooling_weights(self.rho, self.mu)
        return torch.stack([selection(self.cost, self.mu), smoothed, torch.full_like(smoothed, 1 / len(smoothed))])

    @property
    def marginals(self) -> Tensor:
        """Share z (m,) of the transported mass that goes to each prototype."""
        return self.pi.sum(-1) / self.mu

    @property
    def threshold(self) -> float:
        """Largest distance to the nearest prototype at which the linear programme still selects a feature."""
        return float(self.cost.amin(-2)[selection(self.cost, self.mu) > 0].max())

    def open_at(self, features: Tensor) -> Tensor:
        """Return the gate values (...,) of other features (..., D), using the solved bias."""
        cost = prototype_costs(features, self.prototypes)
        soft_min = (-self.epsilon * cost).logsumexp(-2)
        return torch.ones_like(soft_min) if self.bias is None else torch.sigmoid(self.bias + soft_min)

    def mean_gate(self, bias: Tensor) -> Tensor:
        """Return mean_j sigmoid(a + l_j) for biases a (...,); it equals mu at the solution a*."""
        return torch.sigmoid(bias[..., None] + self.soft_min).mean(-1)

    def weights_over(self, epsilons: Tensor) -> Tensor:
        """Return the weights of the smoothed problem for other values of epsilon (E,), shape (E, n)."""
        rho, _ = transport(epsilons[:, None, None] * self.cost, self.mu, 1.0)
        return pooling_weights(rho, self.mu)

    def contraction(self) -> tuple[float, float]:
        """Return the rate of convergence (k, r) as defined by `convergence.contraction`."""
        k, r = contraction(self.rho, self.mu)
        return float(k), float(r)

    def sweep_biases(self, count: int) -> Tensor:
        """Return the biases (count + 1,) of `count` published sweeps, starting from 0."""
        return sweep_biases(self.soft_min, self.mu, count)

    def sweep_errors(self, biases: Tensor) -> Tensor:
        """Return the errors (K,) after each of K sweeps, given their biases (K + 1,) including the start."""
        return bias_errors(self.cost, self.rho, self.epsilon, biases[:-1], biases[1:])

    def newton_errors(self) -> Tensor:
        """Return the errors (steps + 1,) of Newton's iterates including the start; empty at mu = 1.

        An error is the largest absolute difference of n rho and n pi from the exact solution.
        """
        return bias_errors(self.cost, self.rho, self.epsilon, self.newton_biases, self.newton_biases)

    def sweeps_needed(self, tolerance: float = 1e-6) -> int | None:
        """Return the number of sweeps after which the error remains at most `tolerance`; None if above MOST_SWEEPS."""
        _, r = self.contraction()
        if r == 1 or math.log(tolerance) / math.log(r) > 2 * MOST_SWEEPS:
            return None
        for count in (64, 512, MOST_SWEEPS):
            steps = steps_below(self.sweep_errors(self.sweep_biases(count)), tolerance)
            if steps is not None:
                break
        return steps
