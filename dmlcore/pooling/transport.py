"""Entropic partial transport, which selects the features to pool and assigns each to prototypes.

    min  sum_ij c_ij pi_ij + (1/epsilon) (sum pi log pi + sum rho log rho)
    s.t. rho_j + sum_i pi_ij = 1/n,   sum_ij pi_ij = mu,   pi, rho >= 0

The problem has n features and m prototypes. Its solution is a logistic gate on the soft-min distance of each feature,
with one bias a for all (Gurbuz 2022, ch. 5, in the exact form): l_j = logsumexp_i(-epsilon c_ij), P_ij =
softmax_i(-epsilon c_ij), mean_j sigmoid(a + l_j) = mu, rho_j = sigmoid(-a - l_j) / n, pi_ij = sigmoid(a + l_j) P_ij /
n.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, cast

import torch
from torch import Tensor

MOST_STEPS = 60  # maximum number of steps of the safeguarded Newton iteration, which needs 4 to 14
EXPORTED_STEPS = 20  # number of steps in an exported graph, which cannot stop when the iteration has converged


def transport(cost: Tensor, mu: float, epsilon: float) -> tuple[Tensor, Tensor]:
    """Solve the transport problem exactly, with a closed-form gradient; differentiable twice.

    Args:
        cost: Costs (..., m, n) for m prototypes and n features, float32 or float64.
        mu: Transported mass in (0, 1]. mu = 1 keeps every feature: rho = 0, pi = P / n.
        epsilon: Inverse temperature, > 0; large values approach a hard selection.

    Returns:
        Mass rho of each feature that is left out, shape (..., n), and the plan pi, shape (..., m, n).

    Raises:
        TypeError, ValueError: If an argument is invalid; the message names it.

    Example:
        Half of the mass goes to the nearer two of four features.

        >>> import torch
        >>> from dmlcore import pooling
        >>> rho, pi = pooling.transport(torch.tensor([[0.0, 2.0, 0.0, 2.0]]), mu=0.5, epsilon=20.0)
        >>> rho.round(decimals=4)
        tensor([0.0000, 0.2500, 0.0000, 0.2500])
        >>> pi.round(decimals=4)
        tensor([[0.2500, 0.0000, 0.2500, 0.0000]])

    Reference:
        Gurbuz 2022, (P2), Prop. 5.2.2 corrected.
    """
    check_transport(cost, mu, epsilon)
    return cast(tuple[Tensor, Tensor], _Transport.apply(cost, mu, epsilon))


def check_transport(cost: Tensor, mu: float, epsilon: float) -> None:
    """Check that the transport problem is well posed.

    Raises:
        TypeError, ValueError: If an argument is invalid; the message names it.
    """
    if not isinstance(cost, Tensor) or cost.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"cost must be a float32 or float64 tensor, got {getattr(cost, 'dtype', type(cost).__name__)}")
    if cost.ndim < 2 or 0 in cost.shape[-2:]:
        raise ValueError(f"cost must have shape (..., prototypes, features), both at least 1, got {tuple(cost.shape)}")
    if not 0 < mu <= 1:
        raise ValueError(f"mu, the transported mass, must lie in (0, 1], got {mu}")
    if not (epsilon > 0 and math.isfinite(epsilon)):
        raise ValueError(f"epsilon, the inverse temperature, must be positive and finite, got {epsilon}")


def gate_bias(soft_min: Tensor, mu: float) -> Tensor:
    """Return the bias a (..., 1) with mean_j sigmoid(a + l_j) = mu, for l = soft_min (..., n) and 0 < mu < 1."""
    *_, a = newton_biases(soft_min, mu)
    return a


def newton_biases(soft_min: Tensor, mu: float) -> Iterator[Tensor]:
    """Yield the iterates (..., 1) of Newton's method for `gate_bias`, starting from the middle of the bracket.

    A step that would leave the bracket [logit mu - max l, logit mu - min l] is replaced with bisection. The iteration
    ends when the mean gate equals mu up to rounding, or when the bias no longer changes.
    """
    logit = math.log(mu) - math.log1p(-mu)
    low, high = logit - soft_min.amax(-1, keepdim=True), logit - soft_min.amin(-1, keepdim=True)
    a = (low + high) / 2
    yield a
    tolerance = 4 * torch.finfo(soft_min.dtype).eps
    is_exporting = torch.compiler.is_exporting()
    for _ in range(EXPORTED_STEPS if is_exporting else MOST_STEPS):
        s, z = torch.sigmoid(a + soft_min), torch.sigmoid(-a - soft_min)
        excess = s.mean(-1, keepdim=True) - mu
        low, high = torch.where(excess < 0, a, low), torch.where(excess > 0, a, high)
        step = a - excess / (s * z).mean(-1, keepdim=True)
        # a step that ends on the boundary of the bracket has found the root; it did not overshoot
        slack = tolerance * (1 + a.abs())
        step = torch.where((step > low - slack) & (step < high + slack), step, (low + high) / 2)
        step = torch.where(excess.abs() <= tolerance * mu, a, step)
        converged = not is_exporting and bool(((step - a).abs() <= slack).all())
        a = step
        yield a
        if converged:
            return


def _smallest(values: Tensor, k: int) -> Tensor:
    """Return the k-th smallest of values (..., n), shape (..., 1)."""
    if torch.compiler.is_exporting():  # ONNX has no kthvalue
        return values.topk(k, largest=False).values[..., -1:]
    return values.kthvalue(k, keepdim=True).values


class _Transport(torch.autograd.Function):
    """Transport with an exact forward pass and a closed-form backward pass.

    With z = n rho and gbar = sum_i P g_pi, the gradient is dL/dc = -epsilon pi (g_pi - gbar + z (h - hbar)); h = gbar -
    g_rho and hbar is its mean with weights z (1 - z).
    """

    @staticmethod
    def forward(ctx: Any, cost: Tensor, mu: float, epsilon: float) -> tuple[Tensor, Tensor]:
        n = cost.shape[-1]
        nearest = cost.amin(-2, keepdim=True)
        P = (nearest - cost).mul_(epsilon).exp_()
        total = P.sum(-2, keepdim=True)
        P = P.div_(total)
        # Take costs relative to the cost of the last selected feature, because in float32 epsilon * cost would lose
        # significant digits. A constant only changes the bias.
        threshold = _smallest(nearest, max(1, round(mu * n)))
        soft_min = (epsilon * (threshold - nearest) + total.log())[..., 0, :]
        if mu == 1:
            rho, pi = torch.zeros_like(soft_min), P.div_(n)
        else:
            a = gate_bias(soft_min, mu)
            rho = torch.sigmoid(-a - soft_min) / n
            pi = P.mul_((torch.sigmoid(a + soft_min) / n)[..., None, :])
        ctx.save_for_backward(cost, rho, pi)
        ctx.set_materialize_grads(False)
        ctx.mu, ctx.epsilon = mu, epsilon
        return rho, pi

    @staticmethod
    def backward(ctx: Any, g_rho: Tensor | None, g_pi: Tensor | None) -> tuple[Tensor, None, None]:
        cost, rho, pi = ctx.saved_tensors
        g_rho = torch.zeros_like(rho) if g_rho is None else g_rho
        z = cost.shape[-1] * rho
        if g_pi is None:  # usually the loss depends on the pooling weights only; then g_pi is None and P is not needed
            gbar, inner = torch.zeros_like(rho), torch.zeros_like(rho)[..., None, :]
        else:
            P = torch.softmax((cost.detach().amin(-2, keepdim=True) - cost).mul_(ctx.epsilon), dim=-2)
            gbar = (P * g_pi).sum(-2)
            inner = g_pi - gbar[..., None, :]
        if ctx.mu < 1:
            h, w = gbar - g_rho, z * (1 - z)
            total = w.sum(-1, keepdim=True)
            hbar = (w * h).sum(-1, keepdim=True) / total.where(total > 0, 1.0)
            inner.add_((z * (h - hbar))[..., None, :])
        return (pi * inner).mul_(-ctx.epsilon), None, None


def sweeps(cost: Tensor, mu: float, epsilon: float, count: int = 100) -> tuple[Tensor, Tensor]:
    """Return (rho, pi) after `count` sweeps of the published iteration, starting from t = 1, in the log domain.

    Gradients pass through the iteration. It converges linearly with factor 1 - k/mu, k = 1 - mu - n rho.rho, and only
    as 1/count at mu = 1; before convergence rho + sum_i pi differs from 1/n.

    Args:
        cost: Costs (..., m, n) as in `transport`.
        mu: Transported mass in (0, 1].
        epsilon: Inverse temperature.
        count: Number of sweeps.

    Raises:
        TypeError, ValueError: If an argument is invalid; the message names it.

    Reference:
        Gurbuz 2022, Prop. 5.2.1.
    """
    check_transport(cost, mu, epsilon)
    scaled = -epsilon * cost
    soft_min = scaled.logsumexp(-2)
    a = torch.zeros_like(soft_min[..., :1])
    for _ in range(count):
        log_rho, a = sweep(a, soft_min, mu)
    pi = torch.exp(a[..., None] + scaled + log_rho[..., None, :])
    return torch.exp(log_rho), pi


def sweep(a: Tensor, soft_min: Tensor, mu: float) -> tuple[Tensor, Tensor]:
    """Run one published sweep from the bias a = log t (..., 1); return log rho (..., n) and the next bias (..., 1)."""
    log_rho = torch.nn.functional.logsigmoid(-a - soft_min) - math.log(soft_min.shape[-1])
    return log_rho, math.log(mu) - (soft_min + log_rho).logsumexp(-1, keepdim=True)


def selection(cost: Tensor, mu: float) -> Tensor:
    """Return the pooling weights (..., n) of the linear programme, which is the limit epsilon -> infinity.

    Features are selected in order of increasing min_i c_ij, with mass 1/n each, until mu is used up; the last one may
    receive a fraction. The weights are divided by mu and sum to 1. Ties at the threshold go to the lower index.

    Args:
        cost: Shape (..., m, n).
        mu: Transported mass in (0, 1].

    Reference:
        Gurbuz 2022, (P1).
    """
    check_transport(cost, mu, 1.0)
    n = cost.shape[-1]
    order = cost.amin(-2).sort(dim=-1, stable=True).indices
    filled = (mu * n - torch.arange(n, device=cost.device, dtype=cost.dtype)).clamp(0, 1) / (mu * n)
    return torch.zeros_like(cost[..., 0, :]).scatter(-1, order, filled.expand_as(order))


def pooling_weights(rho: Tensor, mu: float) -> Tensor:
    """Compute the weights p_j = (1/n - rho_j) / mu of the pooled vector, which sum to 1 for the exact solution.

    Args:
        rho: Mass of each feature that is left out, shape (..., n).
        mu: Transported mass in (0, 1].
    """
    return (1 / rho.shape[-1] - rho) / mu
