"""Errata of Gürbüz 2022 about histograms of features and the entropic transport (ch. 4, 5, App. B), evaluated."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import numpy as np
import torch
from scipy.optimize import linprog
from torch import Tensor

from dmlcore.pooling.analysis import prototype_shares
from dmlcore.pooling.analysis.convergence import contraction, sweep_biases, sweep_errors
from dmlcore.pooling.transport import transport
from dmlcore.published.checks.number import Check, Decision, Number, Outcome
from dmlcore.typing import Floats

M, N, MU, EPSILON = 3, 7, 0.4, 3.0  # prototypes and features of the small problem below


def _problem() -> tuple[Tensor, Tensor, Tensor]:
    """Costs (3, 7) of a small problem, and the slopes of a loss in rho (7,) and pi (3, 7)."""
    i, j = torch.arange(M, dtype=torch.float64)[:, None], torch.arange(N, dtype=torch.float64)
    return 1 + 0.8 * torch.sin(1.3 * i + 0.9 * j + 0.4 * i * j), torch.cos(0.7 * j), torch.sin(i + 0.5 * j)


def _slope(cost: Tensor, at: tuple[int, int], of: Callable[[Tensor], Tensor], h: float = 1e-5) -> Tensor:
    """Central difference of `of` as one cost moves."""
    step = torch.zeros_like(cost)
    step[at] = h
    return (of(cost + step) - of(cost - step)) / (2 * h)


# ---- histograms of features (ch. 4)


def _difference_of_means() -> Iterable[Outcome]:
    def apart(scale: float) -> float:
        return float(scale * (np.tanh(2.0) - np.tanh(-2.0)))  # f = scale tanh(2 x), at x = 1 and at x = -1

    yield Decision("growth of the printed supremum when f is doubled", 1.0, 2.0, apart(2) / apart(1), "evaluation")
    yield Decision("most that f with |f| at most 1 can give", None, 2.0, apart(1), "evaluation", bound=True)


def _second_sum() -> Iterable[Outcome]:
    x, y, f = np.array([0.0, 1.0, 2.0]), np.array([1.0, 2.0, 4.0]), np.square
    support = np.union1d(x, y)
    mass = np.array([(x == z).mean() - (y == z).mean() for z in support])
    yield Decision(
        "difference of the means of f = z² over {0, 1, 2} and {1, 2, 4}",
        float(f(x).mean() - f(x).mean()),
        float(f(x).mean() - f(y).mean()),
        float((mass * f(support)).sum()),
        "sum over the joint support",
    )


def _ties() -> Iterable[Outcome]:
    distances = np.abs(np.array([-1.0, 1.0]) - 0.0)  # two prototypes, and a feature between them
    plans = set()
    for preferred in range(2):  # a linear programme has one answer: a trace of preference asks for each of them
        nudged = distances - 1e-6 * (np.arange(2) == preferred)
        plans.add(tuple(linprog(nudged, A_eq=np.ones((1, 2)), b_eq=[1.0]).x.round(9)))
    nearest = int((distances == distances.min()).sum())
    yield Decision(
        "plans of least cost for a feature between two prototypes", 1, nearest, len(plans), "linear programme"
    )


OPPOSITE = ([[[-1.0, 0.0]]], [[1.0, 0.0]])  # the feature on one side of the disc, the prototype on the other


def _bound() -> Iterable[Outcome]:
    read = prototype_shares.read(*OPPOSITE)
    error, mean, radius = (float(x[0]) for x in (read.error, read.mean_distance, read.radius))
    yield Decision(
        "bound of the error for V = {(1, 0)}, X = {(-1, 0)}", math.sqrt(radius), mean, error, "evaluation", bound=True
    )
    generator = np.random.default_rng(0)
    broken = 0
    for _ in range(200):
        points = generator.uniform(-1, 1, (1, 5, 2)) / math.sqrt(2)
        read = prototype_shares.read(points, points[0, :1])
        broken += int(not read.holds[0])
    yield Number("of 200 random sets in the unit disc, those that break the bound without the square", "0", broken)


def _norm_of_f() -> Iterable[Outcome]:
    features, prototypes = (np.array(x) for x in OPPOSITE)
    largest = float(np.linalg.norm(features[0] - prototypes, axis=-1).max())
    yield Decision("largest length of f(x) = ν - x on the unit ball", 1, 2, largest, "evaluation", bound=True)


# ---- the iteration and its rate (5.2.1)


def _rate() -> Iterable[Outcome]:
    cost, *_ = _problem()
    for mu, epsilon, count in ((0.3, 3.0, 12), (0.5, 3.0, 18), (0.7, 8.0, 80)):
        rho, _ = transport(cost, mu, epsilon)
        k, factor = contraction(rho, mu)
        steps = sweep_biases((-epsilon * cost).logsumexp(-2), mu, count).diff()
        yield Decision(
            f"factor of the error from sweep to sweep, μ = {mu}, ε = {epsilon:g}",
            None,
            float(1 - k / mu),
            float(steps[-1] / steps[-2]),
            f"the last steps of {count} sweeps",
            tolerance=1e-4,
        )
        assert torch.isclose(factor, 1 - k / mu)
    errors = sweep_errors(cost, 1.0, EPSILON, 2000)
    yield Decision(
        "error after 2,000 sweeps over that after 1,000, at μ = 1",
        None,
        0.5,
        float(errors[1999] / errors[999]),
        "sweeps",
        tolerance=0.01,
    )


# ---- the gradient (5.2.2)


def _ones() -> Iterable[Outcome]:
    cost, _, slope = _problem()
    _, pi = transport(cost, MU, EPSILON)
    summed = (pi * slope).mT  # n × m
    fits = [size for size in range(1, 10) if _multiplies(summed, torch.ones(size, dtype=torch.float64))]
    yield Decision(f"length of the vector of ones, π of size {M} × {N}", N, M, fits[0], "what the product accepts")


def _multiplies(matrix: Tensor, vector: Tensor) -> bool:
    try:
        matrix @ vector
    except RuntimeError:
        return False
    return True


def _gradient(vector_outside: bool) -> tuple[Tensor, Tensor]:
    """dL/dc (3, 7) by (5.2.2), its two terms; with rho outside of Diag the second is a vector (3, 1)."""
    cost, g_rho, g_pi = _problem()
    rho, pi = transport(cost, MU, EPSILON)
    q = rho * g_rho + (pi * g_pi).sum(0)
    k = 1 - MU - N * rho @ rho
    eta = rho @ g_rho - N * q @ rho
    second = N * (pi @ torch.diag(q - eta / k) @ rho)[:, None] if vector_outside else N * pi * (q - eta / k * rho)
    return -EPSILON * pi * g_pi, EPSILON * second


def _closing_bracket() -> Iterable[Outcome]:
    cost, g_rho, g_pi = _problem()

    def loss(c: Tensor) -> Tensor:
        rho, pi = transport(c, MU, EPSILON)
        return (g_rho * rho).sum() + (g_pi * pi).sum()

    for at in ((0, 0), (2, 5)):
        first, second = _gradient(vector_outside=False)
        printed, outside = _gradient(vector_outside=True)
        yield Decision(
            f"dL/dc of prototype {at[0] + 1} and feature {at[1] + 1}",
            float((printed + outside)[at]),
            float((first + second)[at]),
            float(_slope(cost, at, loss)),
            "central differences of the exact solution",
            tolerance=1e-7,
        )
    yield Decision(
        "entries of the second term",
        _gradient(vector_outside=True)[1].numel(),
        _gradient(vector_outside=False)[1].numel(),
        cost.numel(),
        "size of the costs",
    )


# ---- the matrix that is inverted (App. B.3)


def _constraints() -> tuple[Floats, Floats]:
    """A (n + 1, n + mn) of the constraints on x = (rho, pi), and the solution x of the small problem."""
    cost, *_ = _problem()
    rho, pi = transport(cost, MU, EPSILON)
    each = np.hstack([np.eye(N), np.tile(np.eye(N), (1, M))])  # rho_j + sum_i pi_ij
    mass = np.r_[np.zeros(N), np.ones(M * N)]  # sum_ij pi_ij
    return np.vstack([each, mass]), np.r_[rho.numpy(), pi.numpy().ravel()]


def _inverted() -> Floats:
    A, x = _constraints()
    H: Floats = A @ np.diag(x) @ A.T
    return H


def _inner_product() -> Iterable[Outcome]:
    cost, *_ = _problem()
    rho = transport(cost, MU, EPSILON)[0].numpy()
    referee = float(np.linalg.det(_inverted())) * float(N) ** N
    for j in (0, 3):
        elementwise = 1 - MU - N * rho[j] * rho[j]
        yield Decision(
            f"k, entry {j + 1} of ρρ", float(elementwise), float(1 - MU - N * rho @ rho), referee, "det H · nⁿ"
        )


def _size_of_h() -> Iterable[Outcome]:
    yield Decision(f"rows of H for n = {N}, m = {M}", M + 1, N + 1, len(_inverted()), "construction")
    yield Decision(f"columns of H for n = {N}, m = {M}", N, N + 1, _inverted().shape[1], "construction")


def _sign() -> Iterable[Outcome]:
    A, x = _constraints()
    D = np.diag(x)
    of_lambda = np.linalg.solve(A @ D @ A.T, A @ D)  # (n + 1, variables): printed, transposed
    of_x = {sign: -EPSILON * D @ (np.eye(len(x)) + sign * A.T @ of_lambda) for sign in (1, -1)}
    cost, *_ = _problem()

    def mass(c: Tensor) -> Tensor:
        return transport(c, MU, EPSILON)[1].sum()

    moved = {sign: float((A @ dx)[N, N]) for sign, dx in of_x.items()}
    referee = float(_slope(cost, (0, 0), mass))
    what = "slope of the transported mass in a cost, by the next line"
    yield Decision(what, moved[1], moved[-1], referee, "central differences of the exact solution", tolerance=1e-7)
    entry = float(_slope(cost, (0, 0), lambda c: transport(c, MU, EPSILON)[1][0, 0]))
    yield Decision(
        "dπ₁₁/dc₁₁", float(of_x[1][N, N]), float(of_x[-1][N, N]), entry, "central differences", tolerance=1e-7
    )


def _selecting_pi() -> Iterable[Outcome]:
    _, x = _constraints()
    yield Decision("columns of Ī, which multiplies (ρ, π)", (M + 1) * N + M * N, N + M * N, len(x), "length of (ρ, π)")


CHECKS: Mapping[int, Check] = {
    52: _difference_of_means,
    53: _second_sum,
    54: _ties,
    55: _bound,
    56: _norm_of_f,
    57: _rate,
    58: _ones,
    59: _closing_bracket,
    60: _inner_product,
    61: _size_of_h,
    62: _sign,
    63: _selecting_pi,
}
