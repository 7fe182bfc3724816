"""Potential-field losses against plain loops, and the forces of single pairs."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from dmlcore import losses
from dmlcore.losses.potentials import NEAREST
from tests.members import in_one_case

SIZES = {"classes": 4, "embedding_dim": 6}
LABELS = [0, 0, 0, 1, 1, 2]  # class 3 is absent


def make(name: str, **hyper: float) -> nn.Module:
    torch.manual_seed(1)
    return losses.for_training(name, **SIZES, **hyper).double()


def batch() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(len(LABELS), 6, generator=generator, dtype=torch.float64), torch.tensor(LABELS)


def potential(d: float, same: bool, alpha: float, delta: float) -> float:
    """Return the printed potential at distance d from a point of the same or of another class."""
    if same:
        return -1 / delta**alpha if d < delta else -1 / d**alpha
    return 1 / d**alpha if d < delta else 1 / delta**alpha


def energy(points: Tensor, labels: list[int], alpha: float, delta: float) -> float:
    """Return the mean over the points of the sum of the potentials of all other points."""
    units = [x / x.norm() for x in points]
    total = 0.0
    for i, z in enumerate(units):
        for j, other in enumerate(units):
            if i != j:
                total += potential(float((z - other).norm()), labels[i] == labels[j], alpha, delta)
    return total * delta**alpha / len(units)


# Random unit vectors in 6 dimensions have distances around 1.4, so these radii put pairs on both sides.
HYPER = [(1.0, 1.4), (2.5, 1.2), (4.0, 1.5), (6.0, 1.3)]


@in_one_case(hyper=HYPER)
def test_samples_against_a_plain_loop(hyper: tuple[float, float]) -> None:
    x, y = batch()
    loss = make("potential_pairs", alpha=hyper[0], delta=hyper[1])
    assert loss(x, y).item() == pytest.approx(energy(x, LABELS, *hyper), rel=1e-12)
    assert loss.counts.valid == 6 * 5


@in_one_case(hyper=HYPER)
def test_samples_and_proxies_against_a_plain_loop(hyper: tuple[float, float]) -> None:
    x, y = batch()
    loss = make("potential_field", alpha=hyper[0], delta=hyper[1], per_class=3)
    assert loss.proxies.shape == (12, 6)
    points = torch.cat([x, loss.proxies.detach()])
    labels = LABELS + [c for c in range(4) for _ in range(3)]
    assert loss(x, y).item() == pytest.approx(energy(points, labels, *hyper), rel=1e-12)


@in_one_case(name=["potential_pairs", "potential_field"])
def test_gradients_of_samples_and_proxies_in_float64(name: str) -> None:
    x, y = batch()
    x[3] = 0.7 * x[0] + 1e-3 * x[1]  # of another class, deep in the core, and nearer than the repulsion grows
    x[5] = 1.1 * x[0] + 0.15 * x[4]
    loss = make(name, alpha=3.0, delta=0.5)
    leaves = [x.requires_grad_(), *loss.parameters()]
    assert torch.autograd.gradcheck(lambda *_: loss(x, y), leaves, eps=1e-7, atol=1e-5, rtol=1e-5)


@in_one_case(alpha=[1.0, 4.0], d=[0.05, 0.15, 0.25, 0.7, 1.9])
def test_forces_of_a_pair_decay_and_the_core_radius_separates_pull_and_push(alpha: float, d: float) -> None:
    delta, angle = 0.2, 2 * math.asin(d / 2)
    x = torch.tensor([[1.0, 0.0], [math.cos(angle), math.sin(angle)]], dtype=torch.float64)
    away = torch.tensor([0.0, -1.0], dtype=torch.float64)  # direction at x[0] that leads away from x[1]
    size = alpha * delta**alpha / d ** (alpha + 1)
    for labels, expected in (([0, 0], -size if d > delta else 0.0), ([0, 1], size if d < delta else 0.0)):
        points = x.clone().requires_grad_()
        value = make("potential_pairs", alpha=alpha, delta=delta)(points, torch.tensor(labels))
        (gradient,) = torch.autograd.grad(value, points)
        along = math.cos(angle / 2)  # share of the force that is tangent to the sphere
        torch.testing.assert_close(-gradient[0], expected * along * away, rtol=1e-9, atol=1e-12)


def test_points_of_two_classes_at_one_place_have_a_finite_potential() -> None:
    ends = []
    for angle in (0.0, NEAREST * 0.2 * 0.999, NEAREST * 0.2 * 1.001):
        x = torch.tensor([[1.0, 0.0], [math.cos(angle), math.sin(angle)]], dtype=torch.float64, requires_grad=True)
        value = make("potential_pairs", alpha=6.0)(x, torch.tensor([0, 1]))
        (gradient,) = torch.autograd.grad(value, x)
        assert gradient.isfinite().all()
        ends.append((value.item(), gradient.norm().item()))
    assert ends[0][0] == pytest.approx(NEAREST**-6 * (1 + 3))  # 1 + alpha / 2 times the potential where it is continued
    assert ends[0][1] == 0
    assert ends[1] == pytest.approx(ends[2], rel=0.02)


def test_proxies_of_untrained_classes_take_no_part() -> None:
    x, y = batch()
    loss = make("potential_field", alpha=2.0, delta=1.4, per_class=2)
    loss.trained = torch.tensor([0, 1, 2])
    loss(x, y).backward()
    assert loss.proxies.grad[:6].any(1).all()
    assert not loss.proxies.grad[6:].any()
    assert loss.between(x, y).item() == make("potential_pairs", alpha=2.0, delta=1.4)(x, y).item()
