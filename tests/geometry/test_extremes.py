"""Extremes over triplets on the sphere compared with random search and closed forms; causes of divergence."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch

from dmlcore import losses
from dmlcore.geometry import Triplet
from dmlcore.geometry.extremes import configuration, extremes, residuals
from dmlcore.geometry.sphere import random_triplets
from tests.members import in_one_case

METU = losses.formula("distance_sensitive").core


@in_one_case(name=losses.names())
def test_no_random_triplet_lies_outside_the_extremes(name):
    loss = losses.create(name)
    core = partial(loss.formula.core, **{k: loss.hyper[k] for k in loss.formula.own})
    least, greatest = extremes(core)
    for dimension in (2, 3, 6):
        found = core(Triplet.of_points(*random_triplets(5_000, dimension, seed=8)))
        assert least.value - 1e-12 <= float(found.min()), dimension
        assert float(found.max()) <= greatest.value + 1e-12, dimension


def test_an_inner_extreme_is_found_to_rounding():
    least, _ = extremes(lambda t: t.d_an**2 - 3 * t.d_an + (t.d_ap - 0.4) ** 2)
    assert least.value == pytest.approx(-2.25, abs=1e-13)
    assert 2 * math.sin(least.angles[1] / 2) == pytest.approx(1.5, abs=1e-6)
    assert 2 * math.sin(least.angles[0] / 2) == pytest.approx(0.4, abs=1e-6)


def test_three_dimensions_allow_what_the_circle_does_not():
    """No three points of the unit circle have three distances of 1."""
    found = extremes(lambda t: (t.d_ap - 1) ** 2 + (t.d_an - 1) ** 2 + (t.d_pn - 1) ** 2)[0].value
    assert found == pytest.approx(0, abs=1e-13)
    assert extremes(lambda t: t.d_ap + t.d_an + t.d_pn)[1].value == pytest.approx(3 * math.sqrt(3), abs=1e-12)


@pytest.mark.parametrize(
    ("s", "r", "ends"),
    [(1, 2, "above"), (1, 1, "above"), (1, 0.95, ""), (0, 0, ""), (-1, 0, "below"), (-1.5, 0, "below")],
)
def test_energies_that_diverge_are_told_from_steep_ones(s, r, ends):
    least, greatest = extremes(partial(METU, s=float(s), r=float(r), rho=1.0))
    assert math.isinf(greatest.value) == (ends == "above")
    assert math.isinf(least.value) == (ends == "below")


def test_configurations_are_unit_triplets_with_these_angles():
    at = torch.tensor([[0.4, 1.1, 0.0], [0.4, 1.1, math.pi], [2.0, 0.3, 1.0]], dtype=torch.float64)
    a, p, n = configuration(at)
    for x in (a, p, n):
        torch.testing.assert_close(x.norm(dim=-1), torch.ones(3, dtype=torch.float64))
    torch.testing.assert_close((a * p).sum(-1), at[:, 0].cos())
    torch.testing.assert_close((a * n).sum(-1), at[:, 1].cos())
    torch.testing.assert_close((p * n).sum(-1)[:2], torch.tensor([0.7, 1.5], dtype=torch.float64).cos())


def test_residuals_are_those_of_the_gradients_on_paper():
    """Section 1.2: npairs has S(n-p), -S a, S a with residuals 0, -S p, S n; location_aware has a, p, 3n."""
    a, p, n = random_triplets(512, 3, seed=0)
    whole = (2 / ((p - n).square().sum(-1) + 2)).sqrt().max()
    assert residuals(losses.formula("npairs").core).whole == pytest.approx(float(whole), rel=1e-12)
    gradient = sum(x.square().sum(-1) for x in (a - p + n, p - a + n, a + p + n))
    printed = partial(losses.formula("location_aware").core, variant="printed")
    assert residuals(printed).whole == pytest.approx(float((11 / gradient).sqrt().max()), rel=1e-12)


def test_the_radial_share_of_facenet_is_that_of_its_gradients():
    a, p, n = random_triplets(512, 3, seed=0)
    gradients = 2 * (n - p), 2 * (p - a), 2 * (a - n)
    inward = sum((g * x).sum(-1).square() for g, x in zip(gradients, (a, p, n), strict=True))
    share = (inward / sum(g.square().sum(-1) for g in gradients)).mean()
    assert residuals(losses.formula("facenet").core).radial == pytest.approx(float(share), rel=1e-12)
