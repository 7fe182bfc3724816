"""Margins of appendix B compared with the golden values and with the boundary itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from dmlcore import losses
from dmlcore.geometry import (
    balanced_rho,
    margin_enclosing,
    margin_for_ellipse,
    margin_from_normalised,
    normalised_margin,
)
from tests.members import in_one_case

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "triplet_losses.json").read_text())["closed_forms"]


@in_one_case(case=GOLDEN["margin_for_ellipse"])
def test_margin_for_ellipse(case):
    expected = case["m1"]
    assert margin_for_ellipse(**{k: v for k, v in case.items() if k != "m1"}) == pytest.approx(expected, rel=1e-9)


@in_one_case(case=GOLDEN["margin_enclosing"])
def test_margin_enclosing(case):
    expected = case["m1"]
    assert margin_enclosing(**{k: v for k, v in case.items() if k != "m1"}) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("s", "r"), [(1, 2), (0, 0), (1, 1), (0, -1)])
def test_the_enclosing_margin_is_the_smallest(s, r):
    """This margin makes every point of both ranking discs active, and a slightly smaller one does not."""
    d, m_ranking, rho = 0.7, 0.15, 1.2
    a, p = torch.zeros(2, dtype=torch.float64), torch.tensor([d, 0.0], dtype=torch.float64)
    angle = torch.linspace(0, 2 * torch.pi, 2001, dtype=torch.float64)
    rim = (d + m_ranking) * torch.stack([angle.cos(), angle.sin()], dim=-1)
    rims = torch.cat([a + rim, p + rim])
    m1 = margin_enclosing(d, m_ranking, s, r, rho)
    for shift, enclosed in ((1e-6, True), (-1e-3, False)):
        raw = losses.create("distance_sensitive", s=s, r=r, rho=rho, m1=m1 + shift, m2=None).raw(a, p, rims)
        assert bool((raw > 0).all()) == enclosed


@in_one_case(bad=[{"d": 0.0}, {"d": float("nan")}, {"rho": -1.0}, {"m_ranking": -2.0}])
def test_bad_input_is_named(bad):
    arguments = {"d": 1.0, "m_ranking": 0.1, "s": 0.0, "r": 0.0, "rho": 1.0} | bad
    with pytest.raises(ValueError, match=next(iter(bad))):
        margin_enclosing(**arguments)


def test_the_printed_margins():
    assert margin_for_ellipse(1, 0.1, 0, 12 / 7) == pytest.approx(4.63809400108, rel=1e-11)
    assert margin_enclosing(1, 0.1, 0, 0, 12 / 7) == pytest.approx(4.485714, abs=5e-7)
    metu = [margin_enclosing(0.5, m, 1, 2, 1) for m in (0, 0.01, 0.1, 0.2)]
    assert metu == pytest.approx([-3.125, -3.0759, -2.7008, -2.3869], abs=5e-5)


# m1, s, r, rho, mu: the table of triplet-losses.md section 6, METU, Fig. 3.5 (a-d) and Fig. B.1
NORMALISED = [
    *((m1, 1, 2, 1, mu) for m1, mu in ((-2, 0.5), (-2.25, 0.25), (-2.325, 0.175), (-2.5, 0), (-3, -0.5))),
    *((m1, 0, r, 12 / 7, mu) for m1, r, mu in ((2.5, -1, 1.7857), (2.5, 0, 0.0714), (-3.5, 2, 0.9286))),
    (-3.5, 0, 3, 12 / 7, -0.7857),
    (4.6381, 0, 0, 12 / 7, 2.2095),
]


@pytest.mark.parametrize(("m1", "s", "r", "rho", "mu"), NORMALISED)
def test_normalised_margins(m1, s, r, rho, mu):
    assert normalised_margin(m1, s, r, rho) == pytest.approx(mu, abs=5e-5)
    assert margin_from_normalised(normalised_margin(m1, s, r, rho), s, r, rho) == pytest.approx(m1, rel=1e-14)
    side = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]], dtype=torch.float64)
    raw = losses.create("distance_sensitive", s=s, r=r, rho=rho, m1=m1, m2=None).raw(*side)
    assert float(raw) == pytest.approx(mu, abs=5e-5)


@pytest.mark.parametrize(("name", "singular"), [("r", 1.0), ("s", -1.0)])
def test_a_fixed_normalised_margin_is_continuous(name, singular):
    """raw and its gradient are continuous at r = 1 and s = -1; with m1 fixed instead, raw has a pole there."""
    points = torch.tensor([[0.3, -0.2], [0.9, 0.4], [-0.5, 1.1]], dtype=torch.float64)

    def at(value, m1=None):
        exponents = {"s": 0.5, "r": 1.5} | {name: value}
        m1 = margin_from_normalised(0.3, rho=1.2, **exponents) if m1 is None else m1
        loss = losses.create("distance_sensitive", rho=1.2, m1=m1, m2=None, **exponents)
        x = points.clone().requires_grad_()
        raw = loss.raw(*x)
        return raw.item(), *torch.autograd.grad(raw, x)

    raw, gradient = at(singular)
    for step in (1e-3, -1e-3, 1e-6, -1e-6, 1e-10, -1e-10):
        near, near_gradient = at(singular + step)
        assert near == pytest.approx(raw, abs=3 * abs(step) + 1e-8)
        torch.testing.assert_close(near_gradient, gradient, rtol=0, atol=10 * abs(step) + 1e-12)
    assert abs(at(singular + 1e-6, m1=0.3)[0]) > 1e5


@in_one_case(case=GOLDEN["balanced_batch"])
def test_balanced_batch(case):
    assert balanced_rho(case["B"], case["C"]) == pytest.approx(case["rho_link"], rel=1e-11)


@pytest.mark.parametrize(
    ("B", "C", "message"),
    [
        (32, 5, "B must be a multiple of C = 5.* try 30"),
        (32, 1, "C must be at least 2"),
        (8, 8, "B must be at least 2 C = 16"),
        (32.0, 4, "B must be a whole number"),
        (0, 4, "B must be at least 2 C = 8"),
    ],
)
def test_a_batch_that_does_not_divide_is_refused(B, C, message):
    with pytest.raises(ValueError, match=message):
        balanced_rho(B, C)


@in_one_case(name=["m1", "s", "r", "rho"])
def test_normalised_margins_must_be_finite(name):
    with pytest.raises(ValueError, match=name):
        normalised_margin(**({"m1": 1.0, "s": 1.0, "r": 2.0, "rho": 1.0} | {name: float("inf")}))
