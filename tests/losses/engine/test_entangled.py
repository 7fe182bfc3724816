"""The fully entangled form; tests/losses/test_contract.py compares it with a loop over triplets for every loss."""

from __future__ import annotations

import math

import pytest
import torch

from dmlcore import losses

LABELS = torch.tensor([0, 0, 1, 1, 2, 2])


def _unit(seed: int = 0) -> torch.Tensor:
    points = torch.randn(6, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return torch.nn.functional.normalize(points, dim=1)


def test_metu_equals_its_formula_written_out() -> None:
    x, terms = _unit(), []
    d = torch.cdist(x, x).tolist()
    for a, p in ((0, 1), (1, 0), (2, 3), (3, 2), (4, 5), (5, 4)):
        others = [n for n in range(6) if LABELS[n] != LABELS[a]]
        energies = (d[a][p] ** 2 / 2 + 0.7 * (1 / d[a][n] + 1 / d[p][n]) - 2 for n in others)
        terms.append(math.log(1 + sum(map(math.exp, energies))))
    loss = losses.create("distance_sensitive", s=1, r=2, rho=0.7, m1=-2, reduction="entangled")
    assert loss(x, LABELS).item() == pytest.approx(sum(terms) / 6, rel=1e-12)
    assert loss.counts.numbers == (24, 24, 24)


def test_facenet_on_the_sphere_is_the_n_pair_loss() -> None:
    """d_ap^2 - d_an^2 = 2 (a.n - a.p), as in Karaman 2021, Sec. 5.3, which names Sohn 2016 as the model."""
    x, terms = _unit(1), []
    dots = (2 * x @ x.T).tolist()
    for a, p in ((0, 1), (1, 0), (2, 3), (3, 2), (4, 5), (5, 4)):
        others = [n for n in range(6) if LABELS[n] != LABELS[a]]
        terms.append(math.log(1 + sum(math.exp(dots[a][n] - dots[a][p]) for n in others)))
    loss = losses.create("facenet", m=0, reduction="entangled")
    assert loss(x, LABELS).item() == pytest.approx(sum(terms) / 6, rel=1e-12)


def test_energies_that_overflow_have_finite_gradients() -> None:
    x = _unit().float()
    x[2] = x[0] + 1e-5
    x.requires_grad_()
    value = losses.create("distance_sensitive", reduction="entangled")(x, LABELS)
    value.backward()
    assert value.item() > 1e3
    assert torch.isfinite(x.grad).all()
