"""A transport problem with 3 prototypes and 7 features, small enough to follow the algebra of Gürbüz 2022, App. B."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from dmlcore.pooling.transport import transport
from dmlcore.typing import Floats

M, N, MU, EPSILON = 3, 7, 0.4, 3.0


def problem() -> tuple[Tensor, Tensor, Tensor]:
    """Return costs (3, 7), and the derivatives of a loss with respect to rho (7,) and pi (3, 7)."""
    i, j = torch.arange(M, dtype=torch.float64)[:, None], torch.arange(N, dtype=torch.float64)
    return 1 + 0.8 * torch.sin(1.3 * i + 0.9 * j + 0.4 * i * j), torch.cos(0.7 * j), torch.sin(i + 0.5 * j)


def solution(mu: float = MU, epsilon: float = EPSILON) -> tuple[Floats, Floats]:
    """Return rho (7,) and pi (3, 7) of the exact solution of the problem."""
    rho, pi = transport(problem()[0], mu, epsilon)
    return rho.numpy(), pi.numpy()


def gradient(vector_outside: bool, epsilon: float = EPSILON) -> Tensor:
    """Return the gradient dL/dc (3, 7) with respect to the costs according to Gürbüz 2022, Eq. 5.2.2.

    If `vector_outside`, rho is outside Diag(...) as printed. The second term is then a vector (3,), which is repeated
    for each feature.
    """
    cost, g_rho, g_pi = problem()
    rho, pi = transport(cost, MU, epsilon)
    q = rho * g_rho + (pi * g_pi).sum(0)
    k = 1 - MU - N * rho @ rho
    eta = rho @ g_rho - N * q @ rho
    vector = N * (pi @ torch.diag(q - eta / k) @ rho)[:, None]
    return -epsilon * (pi * g_pi - (vector if vector_outside else N * pi * (q - eta / k * rho)))


def central_difference(at: tuple[int, int], epsilon: float = EPSILON, h: float = 1e-5) -> float:
    """Return the entry `at` of the gradient dL/dc with respect to the costs, as a central difference."""
    cost, g_rho, g_pi = problem()

    def loss(c: Tensor) -> Tensor:
        rho, pi = transport(c, MU, epsilon)
        return (g_rho * rho).sum() + (g_pi * pi).sum()

    step = torch.zeros_like(cost)
    step[at] = h
    return float((loss(cost + step) - loss(cost - step)) / (2 * h))


def slope_of_mass(epsilon: float = EPSILON, h: float = 1e-5) -> float:
    """Return the derivative of the transported mass with respect to the first cost, as a central difference."""
    cost, *_ = problem()
    step = torch.zeros_like(cost)
    step[0, 0] = h
    more, less = (transport(cost + sign * step, MU, epsilon)[1].sum() for sign in (1, -1))
    return float((more - less) / (2 * h))


def constraints(mu: float = MU, epsilon: float = EPSILON) -> tuple[Floats, Floats]:
    """Return the matrix A (n + 1, n + mn) of the equality constraints on x = (rho, pi), and the solution x."""
    rho, pi = solution(mu, epsilon)
    each = np.hstack([np.eye(N), np.tile(np.eye(N), (1, M))])  # rho_j + sum_i pi_ij
    mass = np.r_[np.zeros(N), np.ones(M * N)]  # sum_ij pi_ij
    return np.vstack([each, mass]), np.r_[rho, pi.ravel()]


def inverted(mu: float = MU) -> Floats:
    """Return the matrix H = A diag(x) A^T, shape (8, 8), whose inverse the source uses."""
    A, x = constraints(mu)
    H: Floats = A @ np.diag(x) @ A.T
    return H


def scaled_determinant(mu: float = MU) -> float:
    """Return n^n det H, which equals the number k in Gürbüz 2022, Eq. 5.2.2."""
    return float(np.linalg.det(inverted(mu))) * float(N) ** N
