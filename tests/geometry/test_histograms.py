"""Prototype combination compared with golden/losses.json, and its bounds on random sets."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlcore.geometry.histograms import prototype_combination

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "losses.json").read_text())["histogram_pcc"]


def test_golden_case():
    r, d = np.meshgrid(np.arange(14), np.arange(3), indexing="ij")
    features = np.sin(0.4 + 1.3 * r + 0.7 * d + 0.21 * r * d)[:, :2]
    found = prototype_combination(features, GOLDEN["prototypes"])
    assert found.assignment.tolist() == GOLDEN["assignment"]
    np.testing.assert_allclose(found.histogram, GOLDEN["histogram"])
    np.testing.assert_allclose(found.combination, GOLDEN["pcc"], rtol=1e-9)
    np.testing.assert_allclose(found.average, GOLDEN["gap"], rtol=1e-9)
    assert found.error == pytest.approx(GOLDEN["error"], rel=1e-9)
    assert found.mean_distance == pytest.approx(GOLDEN["mean_distance"], rel=1e-9)
    assert found.radius == pytest.approx(GOLDEN["radius"], rel=1e-9)


@given(st.integers(0, 10_000), st.integers(1, 20), st.integers(1, 6), st.integers(1, 4))
def test_both_bounds_hold(seed, n, m, dim):
    random = np.random.default_rng(seed)
    found = prototype_combination(random.normal(size=(n, dim)) * 3, random.normal(size=(m, dim)))
    assert found.error <= found.mean_distance + 1e-12 <= found.radius + 2e-12


def test_the_printed_squared_bound_fails():
    found = prototype_combination([[-1.0, 0.0]], [[1.0, 0.0]])
    assert found.error**2 > found.radius


def test_ties_go_to_the_lowest_index():
    assert prototype_combination([[0.0]], [[1.0], [-1.0]]).assignment.tolist() == [0]


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="features must be finite points"):
        prototype_combination(np.zeros((0, 2)), np.zeros((1, 2)))
    with pytest.raises(ValueError, match="prototypes must have 2 columns"):
        prototype_combination(np.zeros((1, 2)), np.zeros((1, 3)))
