"""A variant equals the loss assembled manually: factor, both orders, with and without clamp."""

from __future__ import annotations

import math

import pytest
import torch

from dmlcore import losses
from dmlcore.geometry import forces, scan
from dmlcore.geometry.loss_variant import Variant, scan_variant
from tests.members import in_one_case

A, P, N = (torch.tensor(x, dtype=torch.float64) for x in ([0.1, -0.2], [0.6, 0.1], [0.3, 0.7]))
X = torch.linspace(-1.0, 1.4, 23, dtype=torch.float64)
Y = torch.linspace(-1.2, 1.1, 19, dtype=torch.float64)


@in_one_case(name=losses.names(), probe=["anchor", "positive", "negative"])
def test_a_plain_variant_is_the_scan(name, probe):
    loss = losses.create(name)
    plain, scanned = (
        scan_variant(Variant(loss), A, P, N, probe=probe, x=X, y=Y),
        scan(loss, A, P, N, probe=probe, x=X, y=Y),
    )
    for part in ("raw", "energy", "force"):
        torch.testing.assert_close(getattr(plain, part), getattr(scanned, part), rtol=1e-9, atol=1e-10)
    assert torch.equal(plain.active, scanned.active)


@in_one_case(
    name=["ranking", "distance_sensitive", "moving", "npairs"],
    probe=["anchor", "positive", "negative"],
    both=[True, False],
    clamp=[True, False],
)
def test_energy_and_force_at_every_node(name, probe, both, clamp):
    loss = losses.create(name)
    field = scan_variant(Variant(loss, clamp, both, factor=2.5, shift=0.5), A, P, N, probe=probe, x=X, y=Y)
    for row, col in ((0, 0), (9, 11), (13, 14), (18, 22)):
        points = {"anchor": A, "positive": P, "negative": N} | {probe: torch.stack([X[col], Y[row]])}
        leaf = points[probe] = points[probe].clone().requires_grad_()
        a, p, n = points.values()
        value = loss.clamped if clamp else loss.raw
        energy = 2.5 * (value(a, p, n) + (value(p, a, n) if both else 0)) + 0.5
        (gradient,) = torch.autograd.grad(energy, leaf, allow_unused=True, materialize_grads=True)
        assert field.energy[row, col].item() == pytest.approx(energy.item(), rel=1e-12)
        torch.testing.assert_close(field.force[row, col], -gradient, rtol=1e-10, atol=1e-12)


def test_the_sum_over_both_orders_of_ranking_is_modified_with_one_half():
    """Section 3 of the reference: before the clamp, ranking(a, p, n) + ranking(p, a, n) = 2 modified(1/2)."""
    ranking = Variant(losses.create("ranking", m=0.3), clamp=False, both_orders=True)
    modified = Variant(losses.create("modified_entangle", rho=0.5, m=0.3), clamp=False, factor=2.0)
    one, other = (scan_variant(v, A, P, N, x=X, y=Y) for v in (ranking, modified))
    torch.testing.assert_close(one.energy, other.energy, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(one.force, other.force, rtol=1e-12, atol=1e-12)
    for x, y in zip(forces(ranking, A, P, N), forces(modified, A, P, N), strict=True):
        torch.testing.assert_close(x, y, rtol=1e-12, atol=1e-12)


def test_each_order_is_clamped_by_itself():
    loss = losses.create("ranking", m=0.0)
    a, p, n = (torch.tensor(x, dtype=torch.float64) for x in ([0.0, 0.0], [1.0, 0.0], [1.5, 0.0]))
    variant = Variant(loss, both_orders=True)
    assert loss.raw(a, p, n) < 0 < loss.raw(p, a, n)
    assert variant.clamped(a, p, n) == loss.raw(p, a, n)
    found = variant.table(a, p, n)
    assert found.active
    assert found.energy == loss.raw(p, a, n)


@in_one_case(name=losses.names(), clamp=[True, False])
def test_a_reading_is_energy_and_forces_of_the_variant(name, clamp):
    variant = Variant(losses.create(name), clamp=clamp, both_orders=True, factor=3.0)
    found = variant.table(A, P, N)
    torch.testing.assert_close(found.raw, variant.raw(A, P, N), rtol=1e-13, atol=1e-13)
    torch.testing.assert_close(found.energy, variant.clamped(A, P, N), rtol=1e-13, atol=1e-13)
    for force, expected in zip(found.forces, forces(variant, A, P, N), strict=True):
        torch.testing.assert_close(force, expected)


def test_the_upper_end_of_the_energy():
    loss = losses.create("distance_sensitive", m2=5.0)
    assert Variant(loss, both_orders=True, factor=3.0).m2 == 30
    assert Variant(loss, clamp=False).m2 == math.inf


@in_one_case(factor=[0.0, -1.0, math.nan, math.inf])
def test_a_factor_is_positive_and_finite(factor):
    with pytest.raises(ValueError, match="factor must be positive and finite"):
        Variant(losses.create("ranking"), factor=factor)


def test_an_unknown_probe_is_named():
    with pytest.raises(ValueError, match="'nobody'"):
        scan_variant(Variant(losses.create("ranking")), A, P, N, probe="nobody", x=X, y=Y)
