"""Distances from prototypes to local features in the unit ball, computed with matrix products."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

# Squared distances below NEAR times the feature's squared norm (at most 1) are computed directly, because the matrix
# product loses digits.
NEAR = 0.01


def clip_to_unit_ball(v: Tensor) -> Tensor:
    """Compute v / max(1, |v|) along the last dimension, which is the 1-Lipschitz projection onto the unit ball.

    Args:
        v: Shape (..., D).

    Reference:
        Gurbuz 2022, Sec. 5.2.
    """
    length: Tensor = torch.linalg.vector_norm(v, dim=-1, keepdim=True)
    return v / length.clamp(min=1.0)


def prototype_costs(features: Tensor, prototypes: Tensor) -> Tensor:
    """Compute the costs c_ij = |clip(omega_i) - clip(f_j)| in [0, 2], shape (..., m, n).

    Distances are not squared. The gradient at distance 0 is defined as 0. Differentiable twice.

    Args:
        features: Local features f, shape (..., n, D).
        prototypes: Prototypes omega, shape (m, D).
    """
    if torch.compiler.is_exporting():  # a graph has no branch that depends on values
        return _direct_costs(features, clip_to_unit_ball(prototypes))
    flat = features.flatten(0, -3) if features.ndim > 3 else features.view(-1, *features.shape[-2:])
    cost = cast(Tensor, _Costs.apply(flat.mT, clip_to_unit_ball(prototypes)))
    return cost.view(*features.shape[:-2], *cost.shape[1:])


def _direct_costs(features: Tensor, prototypes: Tensor) -> Tensor:
    """Compute `prototype_costs` from all differences (..., m, n, D), which takes D times the memory."""
    differences = prototypes[:, None] - clip_to_unit_ball(features)[..., None, :, :]
    return cast(Tensor, torch.linalg.vector_norm(differences, dim=-1))


class _Costs(torch.autograd.Function):
    """Costs c_ij = |w_i - s_j f_j|, s_j = 1 / max(1, |f_j|), for features F (B, D, n) and prototypes W (m, D).

    The prototypes must be in the unit ball. With A = g / c (0 if c = 0), T_j = sum_i A_ij and, for |f_j| > 1, the
    component of the gradient along f_j that the projection removes, t_j = sum_i (A_ij (1 - |w_i|^2) + g_ij c_ij) / 2:
        dL/df_j = s_j^2 (T_j - t_j) f_j - s_j sum_i A_ij w_i,   dL/dw_i = sum_j A_ij (w_i - s_j f_j).
    """

    @staticmethod
    def forward(ctx: Any, F: Tensor, W: Tensor) -> Tensor:
        squares = F.square().sum(1)
        s = squares.clamp(min=1.0).rsqrt()
        inside = squares.clamp(max=1.0)
        c = W.expand(len(F), -1, -1).bmm(F).mul_(-2 * s[:, None])
        c = c.add_(inside[:, None]).add_(W.square().sum(1)[:, None])
        near = c < NEAR * inside[:, None]
        c = c.clamp_(min=0.0).sqrt_()
        ctx.touching = False
        if bool(near.any()):
            b, i, j = near.nonzero(as_tuple=True)
            c[b, i, j] = direct = torch.linalg.vector_norm(W[i] - F[b, :, j] * s[b, j, None], dim=-1)
            ctx.touching = bool((direct == 0).any())
        ctx.save_for_backward(F, W, c)
        ctx.squares = squares
        return c

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, Tensor | None]:
        F, W, c = ctx.saved_tensors
        # The saved intermediates have no graph, so they are recomputed if a second derivative is needed.
        squares = F.square().sum(1) if torch.is_grad_enabled() else ctx.squares
        s = squares.clamp(min=1.0).rsqrt()[:, None]
        A = (g / c.where(c > 0, 1.0)).where(c > 0, 0.0) if ctx.touching else g / c
        dF = dW = None
        As = A * s
        if ctx.needs_input_grad[0]:
            T = A.sum(1, keepdim=True)
            t = (T - (W.square().sum(1) @ A)[:, None] + (g * c).sum(1, keepdim=True)) / 2
            along = F * (s.square() * (T - t.where(squares[:, None] > 1, 0.0)))
            dF = along.baddbmm_(W.mT.expand(len(F), -1, -1), As, alpha=-1)
        if ctx.needs_input_grad[1]:
            dW = W * A.sum((0, 2))[:, None] - As.bmm(F.mT).sum(0)
        return dF, dW
