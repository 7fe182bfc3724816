"""Convergence of the published sweeps and of Newton's method to the exact transport: rate, and error after each step.

An error is the largest absolute difference of n rho and n pi from the exact solution; n rho and n pi are the shares of
one feature's mass.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dmlcore.pooling.transport import check_transport, newton_biases, sweep, transport


def contraction(rho: Tensor, mu: float) -> tuple[Tensor, Tensor]:
    """Return (k, r), each (...,), for the exact rho (..., n): k = mean s (1 - s) = 1 - mu - n rho.rho, r = 1 - k/mu.

    Here s is the gate. r is the factor by which one sweep reduces a small error, mu <= r <= 1. At mu = 1, r is 1 and
    the error only decreases as 1/count.

    Reference:
        Derivative of the iteration of Gurbuz 2022, Prop. 5.2.1, at its fixed point.
    """
    z = rho.shape[-1] * rho
    k = (z * (1 - z)).mean(-1)
    return k, 1 - k / mu


def sweep_biases(soft_min: Tensor, mu: float, count: int) -> Tensor:
    """Return the biases a = log t after 0, ..., `count` published sweeps from a = 0, shape (..., count + 1).

    `soft_min` is l, shape (..., n).
    """
    biases = [torch.zeros_like(soft_min[..., :1])]
    for _ in range(count):
        biases.append(sweep(biases[-1], soft_min, mu)[1])
    return torch.cat(biases, -1)


def sweep_errors(cost: Tensor, mu: float, epsilon: float, count: int) -> Tensor:
    """Return the errors after 1, ..., `count` published sweeps, shape (..., count).

    The costs (..., m, n), `mu` and `epsilon` are those of `transport`.
    """
    check_transport(cost, mu, epsilon)
    biases = sweep_biases((-epsilon * cost).logsumexp(-2), mu, count)
    return bias_errors(cost, transport(cost, mu, epsilon)[0], epsilon, biases[..., :-1], biases[..., 1:])


def newton_errors(cost: Tensor, mu: float, epsilon: float) -> Tensor:
    """Return the errors of the iterates of Newton's method, shape (..., steps + 1), starting with the initial bias.

    At mu = 1 there is no bias to solve for, and the shape is (..., 0).
    """
    check_transport(cost, mu, epsilon)
    soft_min = (-epsilon * cost).logsumexp(-2)
    if mu == 1:
        return soft_min[..., :0]
    biases = torch.cat(list(newton_biases(soft_min, mu)), -1)
    return bias_errors(cost, transport(cost, mu, epsilon)[0], epsilon, biases, biases)


def bias_errors(cost: Tensor, rho: Tensor, epsilon: float, before: Tensor, after: Tensor) -> Tensor:
    """Return the errors (..., K) of K iterates, each given by its biases `before` and `after`, both (..., K).

    A sweep computes rho from the bias before it, and pi = e^a P e^l rho from the bias a after it. In Newton's method
    the two biases are equal.
    """
    n = cost.shape[-1]
    scaled = -epsilon * cost
    soft_min = scaled.logsumexp(-2)
    largest = torch.exp(scaled.amax(-2) - soft_min)  # maximum of P_ij over i
    l, a, b = soft_min[..., None, :], before[..., None], after[..., None]  # noqa: E741
    kept = (torch.sigmoid(-a - l) - n * rho[..., None, :]).abs()
    exact = 1 - n * rho[..., None, :]
    moved = (torch.exp(b + l + torch.nn.functional.logsigmoid(-a - l)) - exact).abs() * largest[..., None, :]
    return torch.maximum(kept, moved).amax(-1)


def steps_below(errors: Tensor, tolerance: float = 1e-6) -> int | None:
    """Return the first step, counted from 1, from which on all errors (K,) are at most `tolerance`, or None."""
    beyond = torch.nonzero(errors > tolerance)
    first = int(beyond[-1]) + 2 if len(beyond) else 1
    return first if first <= len(errors) else None
