"""Numbers of the transport figure against the solution."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dmlcore.pooling import pooling_weights, transport
from dmlcore.pooling.analysis.convergence import newton_errors, sweep_errors
from dmlcore.pooling.analysis.gate import MOST_SWEEPS, Gate
from dmlcore.pooling.analysis.red_blue import figure, informative, mixture
from tests.members import in_one_case

FEATURES = torch.from_numpy(mixture(figure())).flatten(0, 1)
RED_AND_BLUE = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], dtype=torch.float64)


def gate(mu=0.2, epsilon=5.0, features=FEATURES) -> Gate:
    return Gate.of(features, RED_AND_BLUE, mu, epsilon)


@in_one_case(mu=[0.01, 0.2, 0.77, 1.0], epsilon=[0.1, 5.0, 450.0])
def test_bias_gates_and_marginals_belong_together(mu, epsilon):
    g = gate(mu, epsilon)
    np.testing.assert_allclose(g.open_at(FEATURES), 1 - 100 * g.rho, atol=1e-9)
    assert g.marginals.sum().item() == pytest.approx(1)
    np.testing.assert_allclose(g.weights.sum(-1), 1, rtol=1e-9)
    if mu < 1:
        assert g.mean_gate(torch.tensor([g.bias], dtype=torch.float64)).item() == pytest.approx(mu)
    else:
        assert g.bias is None


def test_the_threshold_is_where_the_linear_programme_stops():
    g = gate()
    taken = g.weights[0] > 0
    nearest = g.cost.amin(-2)
    assert taken.sum() == 20
    assert nearest[taken].max().item() == g.threshold <= nearest[~taken].min().item()


def test_weights_over_epsilon_are_those_of_single_problems():
    epsilons = torch.tensor([0.1, 5.0, 300.0], dtype=torch.float64)
    for epsilon, weights in zip(epsilons.tolist(), gate().weights_over(epsilons), strict=True):
        np.testing.assert_allclose(weights, pooling_weights(transport(gate().cost, 0.2, epsilon)[0], 0.2), atol=1e-12)


def test_the_published_shares_of_the_informative_blocks():
    found = torch.from_numpy(informative(FEATURES.numpy()))
    shares = gate().weights_over(torch.tensor([0.5, 5, 20, 100], dtype=torch.float64))[:, found].sum(-1)
    np.testing.assert_allclose(shares, [0.576, 0.993, 1.0, 1.0], atol=5e-4)
    smoothed = gate().weights[1]
    assert smoothed[found].min() > 0.0095
    assert smoothed[found].max() < 0.031


def test_errors_are_those_of_the_library():
    g = gate(0.6, 9.0)
    np.testing.assert_array_equal(g.sweep_errors(g.sweep_biases(20)), sweep_errors(g.cost, 0.6, 9.0, 20))
    np.testing.assert_array_equal(g.newton_errors(), newton_errors(g.cost, 0.6, 9.0))
    assert len(gate(1.0).newton_biases) == 0


@pytest.mark.parametrize(("mu", "epsilon"), [(0.2, 5.0), (0.9, 20.0), (0.2, 200.0)])
def test_sweeps_needed_are_counted(mu, epsilon):
    g = gate(mu, epsilon)
    count = g.sweeps_needed()
    assert count is not None
    errors = sweep_errors(g.cost, mu, epsilon, count)
    assert errors[-1] <= 1e-6 < errors[-2]


def test_sweeps_that_do_not_suffice():
    assert gate(1.0).sweeps_needed() is None
    stubborn = torch.cat([RED_AND_BLUE[:1].expand(20, 3), FEATURES[5:6].expand(80, 3)])
    g = gate(0.2, 60.0, stubborn)
    assert g.sweeps_needed() is None
    assert sweep_errors(g.cost, 0.2, 60.0, MOST_SWEEPS)[-1] > 1e-6
