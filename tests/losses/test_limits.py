"""Limits, identities and invariances of triplet-losses.md sections 3 and 4."""

from __future__ import annotations

import math

import pytest
import torch

from dmlcore import losses
from dmlcore.geometry import forces
from tests.members import in_one_case


@pytest.fixture
def triplet():
    generator = torch.Generator().manual_seed(3)
    return tuple(torch.randn(50, 6, generator=generator, dtype=torch.float64) for _ in range(3))


@pytest.mark.parametrize(("limit", "near"), [({"r": 1.0}, {"r": 1.0 + 1e-7}), ({"s": -1.0}, {"s": -1.0 + 1e-7})])
def test_the_logarithmic_limits_are_limits_of_the_forces(triplet, limit, near):
    window = {"m1": 40.0, "m2": 1e12, "r": 2.0, "s": 1.0}
    exact = forces(losses.create("distance_sensitive", **(window | limit)), *triplet)
    close = forces(
        losses.create("distance_sensitive", **(window | {"m1": 1e9 if "s" in near else 3e7} | near)), *triplet
    )
    for f, g in zip(exact, close, strict=True):
        torch.testing.assert_close(f, g, rtol=1e-5, atol=1e-6)


def test_the_core_near_the_limit_differs_by_the_stated_constant(triplet):
    rho, q = 1.3, 1e-6
    at = losses.create("distance_sensitive", r=1.0, rho=rho).core(*triplet)
    near = losses.create("distance_sensitive", r=1.0 - q, rho=rho).core(*triplet)
    torch.testing.assert_close(near, at - 2 * rho / q, rtol=1e-9, atol=1e-4)


def test_identities(triplet):
    def core(name, *points, **hyper):
        return losses.create(name, **hyper).core(*points)

    a, p, n = triplet
    rho = 0.7
    factor, weight = 2 / math.cos(rho) ** 2, 2 * math.sin(rho) ** 2
    close = {"rtol": 1e-12, "atol": 1e-12}
    torch.testing.assert_close(
        core("angular", *triplet, rho=rho),
        factor * core("distance_sensitive", *triplet, s=1, r=-1, rho=weight),
        **close,
    )
    torch.testing.assert_close(
        core("entangle", *triplet), core("distance_sensitive", *triplet, s=1, r=-1, rho=1), **close
    )
    torch.testing.assert_close(
        core("modified_entangle", *triplet, rho=rho),
        core("distance_sensitive", *triplet, s=0, r=0, rho=rho),
        **close,
    )
    torch.testing.assert_close(
        core("ranking", a, p, n) + core("ranking", p, a, n), 2 * core("modified_entangle", *triplet, rho=0.5), **close
    )


def test_far_off_clusters_keep_their_precision():
    generator = torch.Generator().manual_seed(0)
    near = torch.randn(12, 8, generator=generator, dtype=torch.float64)
    labels = torch.arange(12) // 4
    loss = losses.create("ranking", reduction="mean_raw")
    exact = loss((near + 1000).float().double(), labels)
    assert loss((near + 1000).float(), labels).item() == pytest.approx(exact.item(), rel=1e-5)


def test_half_precision_embeddings_are_evaluated_in_float32():
    x = torch.randn(6, 4, dtype=torch.bfloat16, generator=torch.Generator().manual_seed(0)).requires_grad_()
    value = losses.create("ranking")(x, torch.arange(6) // 2)
    value.backward()
    assert value.dtype == torch.float32
    assert x.grad.dtype == torch.bfloat16


def test_half_precision_embeddings_may_have_squares_beyond_its_range():
    x = torch.full((4, 128), 20.0, dtype=torch.float16)  # |x|^2 = 51,200; float16 ends at 65,504
    x[1::2] *= -10
    labels = torch.tensor([0, 0, 1, 1])
    loss = losses.create("ranking")
    assert loss(x, labels).item() == pytest.approx(loss(x.double(), labels).item(), rel=1e-6)


@in_one_case(dtype=[torch.float32, torch.float64], m2=[5.0, None], r=[4.0, 6.0, 8.0, 20.0])
def test_steep_pushes_stay_finite_at_tiny_distances(r, m2, dtype):
    x = (1e-7 * torch.randn(12, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))).to(dtype)
    x.requires_grad_()
    value = losses.create("distance_sensitive", r=r, m2=m2)(x, torch.arange(12) // 4)
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(x.grad).all()


@in_one_case(r=[1.0, 2.0, 3.0])
def test_an_open_clamp_freezes_the_push_below_the_floor(r):
    loss = losses.create("distance_sensitive", r=r, m2=None)
    a, p, n = torch.tensor([[0.0, 0.0], [0.5, 0.0], [0.0, 0.0]], dtype=torch.float64)
    tiny = n + torch.tensor([1e-6, 0.0], dtype=torch.float64)
    assert loss.raw(a, p, n).item() == pytest.approx(loss.raw(a, p, tiny).item(), rel=1e-5)
    assert all(torch.isfinite(f).all() for f in forces(loss, a, p, n))


@in_one_case(s=[-0.5, -1.0, -1.5, -2.0, -3.0])
def test_a_decaying_pull_points_to_the_other_end_and_has_size_d_to_the_power_s(s):
    loss = losses.create("distance_sensitive", s=s, r=0.0, m1=1e5, m2=None)
    n = torch.tensor([0.0, 50.0], dtype=torch.float64)
    energies = []
    for d in (0.02, 0.5, 1.0, 3.0):
        a, p = torch.zeros(2, dtype=torch.float64), torch.tensor([0.6 * d, 0.8 * d], dtype=torch.float64)
        on_a, on_p, on_n = forces(loss, a, p, n)
        push = (a - n) / (a - n).norm(), (p - n) / (p - n).norm()  # r = 0: of size one on both edges
        torch.testing.assert_close(on_a - push[0], d**s * p / d, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(on_p - push[1], -(d**s) * p / d, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(on_n, -push[0] - push[1])
        energies.append(float(loss.raw(a, p, n) + (p - n).norm()))
    assert energies == sorted(energies)  # the nearer the pair, the lower the energy


@in_one_case(s=[-1.0, -1.5, -2.0, -3.0, -8.0], dtype=[torch.float32, torch.float64])
def test_a_decaying_pull_is_frozen_below_the_floor(s, dtype):
    loss = losses.create("distance_sensitive", s=s, r=0.0, m1=0.0, m2=None)
    a, n = torch.zeros(2, dtype=dtype), torch.tensor([0.0, 1.0], dtype=dtype)
    near = [torch.tensor([x, 0.0], dtype=dtype) for x in (0.0, 1e-9, 1e-6, 1e-3)]
    raw = [loss.raw(a, p, n).item() for p in near]
    assert raw[0] == pytest.approx(raw[1], rel=1e-6) == pytest.approx(raw[2], rel=1e-3)
    assert -torch.inf < raw[2] < raw[3] < 0
    for p in near:
        leaf = p.clone().requires_grad_()
        (slope,) = torch.autograd.grad(loss.raw(a, leaf, n), leaf)
        assert torch.isfinite(slope).all()
    x = (1e-7 * torch.randn(12, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)).to(dtype)
    x.requires_grad_()
    value = losses.create("distance_sensitive", s=s, m1=1e30, m2=None)(x, torch.arange(12) // 4)
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(x.grad).all()


def test_large_classes_are_evaluated_in_bounded_blocks():
    """More triplets than one block holds give the same mean as a small float64 loop over anchors."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(150, 3, generator=generator, dtype=torch.float64)
    labels = (torch.arange(150) >= 90).long()
    loss = losses.create("facenet")
    total = 0.0
    for anchor in range(150):
        positives = ((labels == labels[anchor]) & (torch.arange(150) != anchor)).nonzero()[:, 0]
        negatives = (labels != labels[anchor]).nonzero()[:, 0]
        total += loss.clamped(x[anchor], x[positives][:, None], x[negatives][None]).sum().item()
    value = loss(x, labels)
    assert loss.counts.valid == 90 * 89 * 60 + 60 * 59 * 90
    assert value.item() == pytest.approx(total / loss.counts.valid, rel=1e-12)


@in_one_case(size=[10.0, 1e3, 1e6], name=losses.names())
def test_row_41_large_embeddings_overflow_nowhere_in_float32(name, size):
    """exp(89) is infinite in float32, as inner products of embeddings of length 10 already reach."""
    near = torch.randn(3, 20, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * size
    loss = losses.create(name)
    points = near.float().requires_grad_()
    raw = loss.raw(*points)
    raw.sum().backward()
    assert torch.isfinite(points.grad).all()
    torch.testing.assert_close(raw.double(), loss.raw(*points.double()), rtol=1e-3, atol=1e-3 * size)
