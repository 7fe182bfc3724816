"""How fast the published sweeps and Newton's method come to the exact transport: rate, and errors step by step.

Errors are the largest deviation of n rho and n pi, the shares of one feature's mass, from the exact solution.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dmlcore.pooling.transport import check_transport, newton_biases, sweep, transport


def contraction(rho: Tensor, mu: float) -> tuple[Tensor, Tensor]:
    """(k, r) of the exact rho (..., n): k = mean s (1 - s) = 1 - mu - n rho.rho, and r = 1 - k/mu, (...,) each.

    r is the factor by which one sweep shrinks a small error: mu <= r <= 1; at mu = 1 it is 1 and the sweeps come only
    as 1/count. Source: derivative of the iteration of Gurbuz 2022, Prop. 5.2.1, at its fixed point.
    """
    z = rho.shape[-1] * rho
    k = (z * (1 - z)).mean(-1)
    return k, 1 - k / mu


def sweep_biases(soft_min: Tensor, mu: float, count: int) -> Tensor:
    """The biases a = log t (..., count + 1) that `count` published sweeps visit from a = 0; soft_min = l (..., n)."""
    biases = [torch.zeros_like(soft_min[..., :1])]
    for _ in range(count):
        biases.append(sweep(biases[-1], soft_min, mu)[1])
    return torch.cat(biases, -1)


def sweep_errors(cost: Tensor, mu: float, epsilon: float, count: int) -> Tensor:
    """Errors (..., count) after 1, ..., count sweeps; costs (..., m, n), mu and epsilon as in `transport`."""
    check_transport(cost, mu, epsilon)
    biases = sweep_biases((-epsilon * cost).logsumexp(-2), mu, count)
    return bias_errors(cost, transport(cost, mu, epsilon)[0], epsilon, biases[..., :-1], biases[..., 1:])


def newton_errors(cost: Tensor, mu: float, epsilon: float) -> Tensor:
    """Errors (..., steps + 1) of Newton's iterates, its start first; (..., 0) at mu = 1, where nothing is to solve."""
    check_transport(cost, mu, epsilon)
    soft_min = (-epsilon * cost).logsumexp(-2)
    if mu == 1:
        return soft_min[..., :0]
    biases = torch.cat(list(newton_biases(soft_min, mu)), -1)
    return bias_errors(cost, transport(cost, mu, epsilon)[0], epsilon, biases, biases)


def bias_errors(cost: Tensor, rho: Tensor, epsilon: float, before: Tensor, after: Tensor) -> Tensor:
    """Errors (..., K) against the exact rho (..., n) of the rho made by biases `before` and the pi by them and `after`.

    A sweep makes rho of the bias before it (..., K), and pi = e^a P e^l rho of that after it; Newton's have but one.
    """
    n = cost.shape[-1]
    scaled = -epsilon * cost
    soft_min = scaled.logsumexp(-2)
    largest = torch.exp(scaled.amax(-2) - soft_min)  # of P_ij over i
    l, a, b = soft_min[..., None, :], before[..., None], after[..., None]  # noqa: E741
    kept = (torch.sigmoid(-a - l) - n * rho[..., None, :]).abs()
    exact = 1 - n * rho[..., None, :]
    moved = (torch.exp(b + l + torch.nn.functional.logsigmoid(-a - l)) - exact).abs() * largest[..., None, :]
    return torch.maximum(kept, moved).amax(-1)


def steps_below(errors: Tensor, tolerance: float = 1e-6) -> int | None:
    """The number (from 1) of the first entry of errors (K,) from which on all are at most `tolerance`; None if none."""
    beyond = torch.nonzero(errors > tolerance)
    first = int(beyond[-1]) + 2 if len(beyond) else 1
    return first if first <= len(errors) else None
