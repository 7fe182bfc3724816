"""Margins of appendix B against the golden values and against the boundary itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from dmlcore import losses
from dmlcore.geometry import margin_enclosing, margin_for_ellipse

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "triplet_losses.json").read_text())["closed_forms"]


@pytest.mark.parametrize("case", GOLDEN["margin_for_ellipse"])
def test_margin_for_ellipse(case):
    expected = case["m1"]
    assert margin_for_ellipse(**{k: v for k, v in case.items() if k != "m1"}) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("case", GOLDEN["margin_enclosing"])
def test_margin_enclosing(case):
    expected = case["m1"]
    assert margin_enclosing(**{k: v for k, v in case.items() if k != "m1"}) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("s", "r"), [(1, 2), (0, 0), (1, 1), (0, -1)])
def test_the_enclosing_margin_is_the_smallest(s, r):
    """With it every point of both ranking discs is active; with slightly less some point is not."""
    d, m_ranking, rho = 0.7, 0.15, 1.2
    a, p = torch.zeros(2, dtype=torch.float64), torch.tensor([d, 0.0], dtype=torch.float64)
    angle = torch.linspace(0, 2 * torch.pi, 2001, dtype=torch.float64)
    rim = (d + m_ranking) * torch.stack([angle.cos(), angle.sin()], dim=-1)
    rims = torch.cat([a + rim, p + rim])
    m1 = margin_enclosing(d, m_ranking, s, r, rho)
    for shift, enclosed in ((1e-6, True), (-1e-3, False)):
        raw = losses.create("distance_sensitive", s=s, r=r, rho=rho, m1=m1 + shift, m2=None).raw(a, p, rims)
        assert bool((raw > 0).all()) == enclosed


@pytest.mark.parametrize("bad", [{"d": 0.0}, {"d": float("nan")}, {"rho": -1.0}, {"m_ranking": -2.0}])
def test_bad_input_is_named(bad):
    arguments = {"d": 1.0, "m_ranking": 0.1, "s": 0.0, "r": 0.0, "rho": 1.0} | bad
    with pytest.raises(ValueError, match=next(iter(bad))):
        margin_enclosing(**arguments)
