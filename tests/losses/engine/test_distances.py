"""Directions of vectors with the backward pass that is used on a GPU, run on the CPU."""

from __future__ import annotations

import torch

from dmlcore.losses.engine import distances
from tests.members import in_one_case


def test_first_and_second_derivatives_of_directions() -> None:
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(distances._Unit.apply, (x,))
    assert torch.autograd.gradgradcheck(distances._Unit.apply, (x,))


@in_one_case(scale=[1e-30, 1e-13, 0.0, 1e30])
def test_directions_of_extreme_vectors_have_the_derivatives_of_the_plain_formula(scale: float) -> None:
    generator = torch.Generator().manual_seed(0)
    x, weight = torch.randn(3, 4, generator=generator) * scale, torch.randn(3, 4, generator=generator)
    results = []
    for direction in (distances._Unit.apply, distances.unit):
        leaf = x.clone().requires_grad_()
        value = direction(leaf)
        results.append((value.detach(), torch.autograd.grad((value * weight).sum(), leaf)[0]))
    torch.testing.assert_close(results[0], results[1], rtol=1e-5, atol=0)
