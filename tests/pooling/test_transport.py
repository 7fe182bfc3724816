"""Transport solver against golden/gsp.json, autograd through many sweeps, and properties from the theory."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dmlcore.pooling.transport import newton_biases, pooling_weights, selection, sweeps, transport
from tests.members import in_one_case

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "gsp.json").read_text())
CASES = GOLDEN["cases"]


def tensor(values) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


@in_one_case(case=CASES)
def test_converged_solution_and_gradient(case):
    cost = tensor(case["c"]).requires_grad_()
    rho, pi = transport(cost, case["mu"], case["eps"])
    expected = case["converged"]
    np.testing.assert_allclose(rho.detach(), expected["rho"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(pi.detach(), expected["pi"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(pooling_weights(rho.detach(), case["mu"]), expected["weights"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(pi.detach().sum(-1) / case["mu"], expected["z"], rtol=1e-9, atol=1e-12)
    loss = (tensor(case["a"]) * rho).sum() + (tensor(case["b"]) * pi).sum()
    assert loss.item() == pytest.approx(expected["L"], rel=1e-9)
    (gradient,) = torch.autograd.grad(loss, cost)
    np.testing.assert_allclose(gradient, expected["dL_dc"], rtol=1e-8, atol=1e-11)


@in_one_case(case=CASES)
def test_the_published_iteration_after_k_sweeps(case):
    if case["after_k"]["rho"] is None:
        pytest.fail("golden case without values")
    rho, pi = sweeps(tensor(case["c"]), case["mu"], case["eps"], case["k"])
    np.testing.assert_allclose(rho, case["after_k"]["rho"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(pi, case["after_k"]["pi"], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("case", [c for c in GOLDEN["cases"] if c["lp"]["unique"]], ids=lambda c: c["name"])
def test_the_linear_programme(case):
    np.testing.assert_allclose(selection(tensor(case["c"]), case["mu"]), case["lp"]["weights"], atol=1e-12)


problems = st.tuples(
    st.integers(1, 6), st.integers(1, 12), st.floats(0.02, 0.98), st.floats(0.1, 300), st.integers(0, 999)
)


def random_cost(m: int, n: int, seed: int) -> torch.Tensor:
    return 2 * torch.rand(m, n, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@given(problems)
def test_constraints_hold(problem):
    m, n, mu, epsilon, seed = problem
    rho, pi = transport(random_cost(m, n, seed), mu, epsilon)
    np.testing.assert_allclose(rho + pi.sum(-2), 1 / n, atol=1e-13)
    assert pi.sum().item() == pytest.approx(mu, rel=1e-11)
    assert (rho >= 0).all()
    assert (pi >= 0).all()


@given(problems)
def test_a_constant_cost_changes_nothing_and_gradients_sum_to_zero(problem):
    m, n, mu, epsilon, seed = problem
    cost = random_cost(m, n, seed).requires_grad_()
    rho, pi = transport(cost, mu, epsilon)
    shifted = transport(cost.detach() + 0.7, mu, epsilon)
    np.testing.assert_allclose(shifted[1], pi.detach(), atol=1e-12)
    (gradient,) = torch.autograd.grad((rho.sin() + (3 * pi).cos().sum(-2)).sum(), cost)
    assert gradient.sum().item() == pytest.approx(0, abs=1e-11 * max(1, epsilon))


@pytest.mark.parametrize(("mu", "epsilon"), [(0.2, 0.5), (0.2, 20.0), (0.5, 5.0), (0.9, 0.5), (0.9, 20.0), (1.0, 5.0)])
def test_first_and_second_derivatives(mu, epsilon):
    cost = random_cost(2, 4, 1)[None].repeat(2, 1, 1).requires_grad_()
    with torch.no_grad():
        cost[1] = random_cost(2, 4, 2)
    parts = (lambda pair: pair, lambda pair: pair[0], lambda pair: pair[1])  # both penalties, rho alone, pi alone
    for part in parts[: 3 if (mu, epsilon) == (0.5, 5.0) else 1]:  # a single penalty is a special case of the formula
        solve = lambda c, part=part: part(transport(c, mu, epsilon))  # noqa: E731
        assert torch.autograd.gradcheck(solve, cost, atol=1e-6, rtol=1e-5, fast_mode=True)
        assert torch.autograd.gradgradcheck(solve, cost, atol=1e-5, rtol=1e-5, fast_mode=True)


def test_the_gradient_is_that_of_many_sweeps():
    cost = random_cost(4, 9, 3).requires_grad_()
    weights = torch.linspace(-1, 1, 9, dtype=torch.float64)
    gradients = [
        torch.autograd.grad((pooling_weights(rho, 0.3) * weights).sum() + (pi**2).sum(), cost)[0]
        for rho, pi in (transport(cost, 0.3, 5.0), sweeps(cost, 0.3, 5.0, 400))
    ]
    torch.testing.assert_close(*gradients, rtol=1e-9, atol=1e-13)


def test_a_loss_of_the_weights_alone_has_the_short_gradient():
    mu, epsilon, cost = 0.4, 3.0, random_cost(3, 8, 5).requires_grad_()
    rho, pi = transport(cost, mu, epsilon)
    u = torch.linspace(-1, 2, 8, dtype=torch.float64)
    (gradient,) = torch.autograd.grad((pooling_weights(rho, mu) * u).sum(), cost)
    z = 8 * rho.detach()
    w = z * (1 - z)
    short = -(epsilon / mu) * pi.detach() * z * (u - (w * u).sum() / w.sum())
    torch.testing.assert_close(gradient, short, rtol=1e-12, atol=1e-15)


def test_limits_of_epsilon_and_mu():
    cost = random_cost(3, 10, 4)
    for mu in (0.25, 0.5):
        np.testing.assert_allclose(pooling_weights(transport(cost, mu, 1e-7)[0], mu), 0.1, atol=1e-6)
        np.testing.assert_allclose(pooling_weights(transport(cost, mu, 1e4)[0], mu), selection(cost, mu), atol=1e-6)
    rho, pi = transport(cost, 1.0, 5.0)
    assert (rho == 0).all()
    np.testing.assert_allclose(pi.sum(-2), 0.1, atol=1e-15)


@in_one_case(epsilon=[0.1, 1.0, 10.0, 50.0, 200.0])
def test_float32_stays_within_a_millionth(epsilon):
    cost = torch.rand(16, 64, 49, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 2
    exact = transport(cost, 0.3, epsilon)
    single = transport(cost.float(), 0.3, epsilon)
    for one, other in zip(single, exact, strict=True):
        assert (one.double() - other).abs().max() < 1e-6


@pytest.mark.parametrize("mu", [0.05, 0.3, 0.95])
def test_float32_keeps_the_digits_that_decide_among_costs_of_random_features(mu):
    """Costs are similar and far from 0; rounding of epsilon * cost alone would give an error of nearly 1e-5."""
    generator = torch.Generator().manual_seed(0)
    points = torch.nn.functional.normalize(torch.randn(8, 113, 128, generator=generator), dim=-1)
    cost = torch.cdist(points[:, :64], points[:, 64:])
    for single, exact in zip(transport(cost, mu, 200.0), transport(cost.double(), mu, 200.0), strict=True):
        assert (single.double() - exact).abs().max() < 2e-7 / mu


@in_one_case(dtype=[torch.float32, torch.float64], epsilon=[0.5, 5.0, 50.0, 200.0])
def test_newton_needs_a_dozen_steps_whatever_the_constant(dtype, epsilon):
    """Check that rounding errors near the root do not prolong the iteration."""
    cost = torch.rand(32, 64, 49, generator=torch.Generator().manual_seed(0), dtype=dtype) * 2
    for shift in (0.0, 1.0, -cost.amin(-2).median().item()):
        visited = list(newton_biases((-epsilon * (cost + shift)).logsumexp(-2), 0.3))
        assert len(visited) <= 12


def test_batches_are_independent():
    cost = random_cost(12, 7, 6).reshape(2, 2, 3, 7)
    rho, pi = transport(cost, 0.3, 5.0)
    alone = transport(cost[1, 0], 0.3, 5.0)
    torch.testing.assert_close(rho[1, 0], alone[0], rtol=1e-12, atol=0)
    torch.testing.assert_close(pi[1, 0], alone[1], rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("cost", "mu", "epsilon", "error", "words"),
    [
        (torch.zeros(3), 0.3, 5.0, ValueError, "cost must have shape"),
        (torch.zeros(2, 0), 0.3, 5.0, ValueError, "both at least 1"),
        (torch.zeros(2, 3, dtype=torch.int64), 0.3, 5.0, TypeError, "cost must be a float32 or float64"),
        (torch.zeros(2, 3), 0.0, 5.0, ValueError, "mu, the transported mass"),
        (torch.zeros(2, 3), math.nan, 5.0, ValueError, "mu, the transported mass"),
        (torch.zeros(2, 3), 0.3, 0.0, ValueError, "epsilon, the inverse temperature"),
        (torch.zeros(2, 3), 0.3, math.inf, ValueError, "epsilon, the inverse temperature"),
    ],
)
def test_bad_input_is_named(cost, mu, epsilon, error, words):
    with pytest.raises(error, match=words):
        transport(cost, mu, epsilon)
