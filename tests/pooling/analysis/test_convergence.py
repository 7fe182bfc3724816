"""Rate and errors of the published sweeps and of Newton's method, against golden/gsp.json and direct computation."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from dmlcore.pooling.analysis.convergence import contraction, newton_errors, steps_below, sweep_biases, sweep_errors
from dmlcore.pooling.transport import sweeps, transport
from tests.members import in_one_case

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "gsp.json").read_text())["cases"]
CASES = GOLDEN
BELOW_ONE = [c for c in GOLDEN if c["mu"] < 1]


def tensor(values) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


@in_one_case(case=CASES)
def test_contraction(case):
    expected = case["converged"]
    k, r = contraction(tensor(expected["rho"]), case["mu"])
    assert k.item() == pytest.approx(expected["k_scalar"], abs=1e-9)
    assert r.item() == pytest.approx(expected["contraction"], abs=1e-9)
    assert case["mu"] - 1e-12 <= r.item() <= 1


@in_one_case(case=CASES)
def test_the_biases_are_those_of_the_published_iteration(case):
    soft_min = (-case["eps"] * tensor(case["c"])).logsumexp(-2)
    found = sweep_biases(soft_min, case["mu"], case["k"])
    assert (found[0].item(), found.shape) == (0, (case["k"] + 1,))
    assert found[-1].item() == pytest.approx(case["after_k"]["log_t"], rel=1e-9)


@in_one_case(case=CASES, count=[1, 7])
def test_errors_of_sweeps_are_the_deviation_of_their_plan(case, count):
    cost = tensor(case["c"])
    n = cost.shape[-1]
    exact, after = transport(cost, case["mu"], case["eps"]), sweeps(cost, case["mu"], case["eps"], count)
    largest = max((n * (one - other)).abs().max().item() for one, other in zip(exact, after, strict=True))
    found = sweep_errors(cost, case["mu"], case["eps"], count)
    assert found.shape == (count,)
    assert found[-1].item() == pytest.approx(largest, rel=1e-9, abs=1e-13)


@in_one_case(case=BELOW_ONE)
def test_a_sweep_shrinks_small_errors_by_the_contraction(case):
    _, r = contraction(tensor(case["converged"]["rho"]), case["mu"])
    errors = sweep_errors(tensor(case["c"]), case["mu"], case["eps"], 2000)
    small = torch.nonzero((errors < 1e-5) & (errors > 1e-8))[:, 0]
    if len(small) < 3:
        assert r < 0.05 or r > 0.99, "too fast or too slow to see a ratio"
        return
    ratios = errors[small[1:]] / errors[small[:-1]]
    np.testing.assert_allclose(ratios[-2:], r.item(), rtol=1e-3)


@in_one_case(case=BELOW_ONE)
def test_newton_ends_at_the_exact_solution_in_few_steps(case):
    errors = newton_errors(tensor(case["c"]), case["mu"], case["eps"])
    assert errors[-1] < 1e-12
    assert len(errors) <= 14


def test_at_mu_one_sweeps_creep_and_newton_has_nothing_to_solve():
    cost = 2 * torch.rand(3, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    errors = sweep_errors(cost, 1.0, 5.0, 2000)
    assert newton_errors(cost, 1.0, 5.0).shape == (0,)
    k, r = contraction(transport(cost, 1.0, 5.0)[0], 1.0)
    assert (k.item(), r.item()) == (0, 1)
    assert (errors[1999] / errors[999]).item() == pytest.approx(0.5, abs=0.01)  # O(1/count)


def test_batches_are_independent():
    cost = torch.rand(2, 3, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    both = sweep_errors(cost, 0.4, 6.0, 9)
    assert both.shape == (2, 9)
    for one, alone in zip(both, cost, strict=True):
        torch.testing.assert_close(one, sweep_errors(alone, 0.4, 6.0, 9))


def test_steps_below():
    assert steps_below(tensor([1.0, 1e-3, 1e-7, 1e-5, 1e-8, 0.0])) == 5
    assert steps_below(tensor([1e-9])) == 1
    assert steps_below(tensor([1.0, 0.5])) is None
    assert steps_below(tensor([1.0, 0.4]), 0.5) == 2


@pytest.mark.parametrize("call", [sweep_errors, lambda c, mu, eps, _: newton_errors(c, mu, eps)])
def test_bad_input_is_named(call):
    with pytest.raises(ValueError, match="mu, the transported mass"):
        call(torch.zeros(2, 3), math.nan, 1.0, 3)
