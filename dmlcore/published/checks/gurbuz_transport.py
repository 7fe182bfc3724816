"""Checks of the errata of Gürbüz 2022 about histograms of features and entropic transport (ch. 4, 5, App. B)."""

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
from dmlcore.published.checks import small_transport
from dmlcore.published.checks.number import Check, Decision, Number, Outcome
from dmlcore.published.checks.small_transport import EPSILON, MU, M, N


def _slope(cost: Tensor, at: tuple[int, int], of: Callable[[Tensor], Tensor], h: float = 1e-5) -> Tensor:
    """Return the central difference of the function `of` with respect to the entry `at` of the cost matrix."""
    step = torch.zeros_like(cost)
    step[at] = h
    return (of(cost + step) - of(cost - step)) / (2 * h)


# ---- histograms of features (ch. 4)


def _difference_of_means() -> Iterable[Outcome]:
    def apart(scale: float) -> float:
        return float(scale * (np.tanh(2.0) - np.tanh(-2.0)))  # f(1) - f(-1) for f(x) = scale tanh(2 x)

    yield Decision("growth of the printed supremum when f is doubled", 1.0, 2.0, apart(2) / apart(1), "evaluation")
    yield Decision("largest value with |f| at most 1", None, 2.0, apart(1), "evaluation", bound=True)


def _ties() -> Iterable[Outcome]:
    distances = np.abs(np.array([-1.0, 1.0]) - 0.0)  # distances from two prototypes to a feature midway between them
    plans = set()
    # A linear programme returns only one of several optimal solutions; slightly lowering one cost at a time selects
    # each.
    for preferred in range(2):
        nudged = distances - 1e-6 * (np.arange(2) == preferred)
        plans.add(tuple(linprog(nudged, A_eq=np.ones((1, 2)), b_eq=[1.0]).x.round(9)))
    nearest = int((distances == distances.min()).sum())
    yield Decision(
        "plans of least cost for a feature between two prototypes", 1, nearest, len(plans), "linear programme"
    )


OPPOSITE = ([[[-1.0, 0.0]]], [[1.0, 0.0]])  # a feature on the unit circle, and the only prototype on the opposite side


def _bound() -> Iterable[Outcome]:
    generator = np.random.default_rng(0)
    broken = 0
    for _ in range(200):
        points = generator.uniform(-1, 1, (1, 5, 2)) / math.sqrt(2)
        read = prototype_shares.read(points, points[0, :1])
        broken += int(not read.holds[0])
    yield Number("random sets in the unit disc, of 200, that break the bound without the square", "0", broken)


def _norm_of_f() -> Iterable[Outcome]:
    features, prototypes = (np.array(x) for x in OPPOSITE)
    largest = float(np.linalg.norm(features[0] - prototypes, axis=-1).max())
    yield Decision("largest length of f(x) = ν - x on the unit ball", 1, 2, largest, "evaluation", bound=True)


# ---- the iteration and its rate (5.2.1)


def _rate() -> Iterable[Outcome]:
    cost, *_ = small_transport.problem()
    mu = 0.5
    steps = sweep_biases((-EPSILON * cost).logsumexp(-2), mu, 18).diff()
    true = float(contraction(transport(cost, mu, EPSILON)[0], mu)[1])
    yield Decision(
        "factor of the error from sweep to sweep at μ = 0.5",
        None,
        true,
        float(steps[-1] / steps[-2]),
        "the last of 18 sweeps",
        tolerance=1e-4,
    )
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
    cost, _, slope = small_transport.problem()
    _, pi = transport(cost, MU, EPSILON)
    summed = (pi * slope).mT  # n × m
    fits = [size for size in range(1, 10) if _multiplies(summed, torch.ones(size, dtype=torch.float64))]
    yield Decision(
        f"length of the vector of ones, π of size {M} × {N}", N, M, fits[0], "the length that the product accepts"
    )


def _multiplies(matrix: Tensor, vector: Tensor) -> bool:
    try:
        matrix @ vector
    except RuntimeError:
        return False
    return True


def _closing_bracket() -> Iterable[Outcome]:
    cost, *_ = small_transport.problem()
    yield Decision(
        "dL/dc of prototype 3 and feature 6",
        float(small_transport.gradient(vector_outside=True)[2, 5]),
        float(small_transport.gradient(vector_outside=False)[2, 5]),
        small_transport.central_difference((2, 5)),
        "central differences of the exact solution",
        tolerance=1e-7,
    )
    yield Decision(
        "entries of the second term",
        M,
        M * N,
        cost.numel(),
        "size of the costs",
    )


# ---- the matrix that is inverted (App. B.3)


def _inner_product() -> Iterable[Outcome]:
    rho, _ = small_transport.solution()
    elementwise, inner = 1 - MU - N * rho[3] * rho[3], 1 - MU - N * rho @ rho
    referee = small_transport.scaled_determinant()
    yield Decision("k, entry 4 of ρρ", float(elementwise), float(inner), referee, "det H · nⁿ")


def _size_of_h() -> Iterable[Outcome]:
    yield Decision(f"rows of H for n = {N}, m = {M}", M + 1, N + 1, len(small_transport.inverted()), "construction")
    yield Decision(f"columns of H for n = {N}, m = {M}", N, N + 1, small_transport.inverted().shape[1], "construction")


def _sign() -> Iterable[Outcome]:
    A, x = small_transport.constraints()
    D = np.diag(x)
    # shape (n + 1, number of variables); the source prints the transpose
    of_lambda = np.linalg.solve(A @ D @ A.T, A @ D)
    of_x = {sign: -EPSILON * D @ (np.eye(len(x)) + sign * A.T @ of_lambda) for sign in (1, -1)}
    cost, *_ = small_transport.problem()

    entry = float(_slope(cost, (0, 0), lambda c: transport(c, MU, EPSILON)[1][0, 0]))
    yield Decision(
        "dπ₁₁/dc₁₁", float(of_x[1][N, N]), float(of_x[-1][N, N]), entry, "central differences", tolerance=1e-7
    )


def _selecting_pi() -> Iterable[Outcome]:
    _, x = small_transport.constraints()
    yield Decision("columns of Ī, which multiplies (ρ, π)", (M + 1) * N + M * N, N + M * N, len(x), "length of (ρ, π)")


CHECKS: Mapping[int, Check] = {
    52: _difference_of_means,
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
