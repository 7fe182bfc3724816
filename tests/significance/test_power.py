"""Power of paired t tests compared with the noncentral t of scipy, where it is finite, and with published sizes."""

import math

import numpy as np
import pytest
from scipy import stats

from dmlcore.significance.power import MOST, pairs_needed, power
from tests.members import in_one_case


@in_one_case(effect=[0.0, 0.3, 1.0, 1.7], pairs=[2, 3, 5, 20])
def test_power_is_that_of_the_noncentral_t(effect, pairs):
    least, shift = stats.t.isf(0.025, pairs - 1), effect * math.sqrt(pairs)
    expected = stats.nct.sf(least, pairs - 1, shift) + stats.nct.cdf(-least, pairs - 1, shift)
    assert power(effect, pairs) == pytest.approx(expected, abs=5e-4)


def test_power_is_a_probability_where_the_noncentral_t_of_scipy_is_none():
    found = [power(effect, pairs) for effect in (5, 20, 1e6) for pairs in (2, 3, 50)]
    assert np.isfinite(found).all()
    assert found[-1] == 1.0


@in_one_case(case=[(0.2, 199), (0.5, 34), (0.8, 15)])
def test_published_sample_sizes_come_out(case):
    effect, pairs = case
    assert pairs_needed(effect, 1.0) == pairs
    assert power(effect, pairs) >= 0.8 > power(effect, pairs - 1)


def test_the_ends():
    assert pairs_needed(0.0, 1.0) is None
    assert pairs_needed(0.0, 0.0) is None
    assert pairs_needed(0.1, 0.0) == 2
    assert pairs_needed(1000.0, 1.0) == 2
    assert pairs_needed(0.01, 1.0) is None  # about 78,000
    assert pairs_needed(-0.5, 1.0) == pairs_needed(0.5, 1.0) <= MOST
