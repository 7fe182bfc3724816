"""The field table compared with `forces` and automatic differentiation, and the views based on it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dmlcore import losses
from dmlcore.geometry import field_table, forces, scan, snapshot
from dmlcore.geometry.boundary import streamlets
from dmlcore.geometry.field_table import CHUNK
from dmlcore.geometry.forces import direction
from tests.members import in_one_case

PROBES = ("anchor", "positive", "negative")


def random_triplets(count: int, dim: int, seed: int = 0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(count, dim, generator=generator, dtype=torch.float64) for _ in range(3)]


@in_one_case(dim=[2, 3, 128], name=losses.names())
def test_the_parts_along_the_edges_add_up_to_the_forces(name, dim):
    loss, (a, p, n) = losses.create(name), random_triplets(200, dim)
    split = field_table(loss, a, p, n)
    for whole, autograd in zip(split.forces, forces(loss, a, p, n), strict=True):
        torch.testing.assert_close(whole, autograd, rtol=1e-9, atol=1e-11)
    pull, push_an, push_pn = (x[:, None] for x in split.strengths)
    ap, an, pn = (direction(x, y) for x, y in ((a, p), (a, n), (p, n)))
    along = push_an * an - pull * ap, pull * ap + push_pn * pn, -push_an * an - push_pn * pn
    for whole, edges, residual in zip(split.forces, along, split.residuals, strict=True):
        torch.testing.assert_close(whole, edges + residual, rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(split.active, (split.raw > 0) & (split.raw < loss.m2))
    torch.testing.assert_close(split.energy, loss.clamped(a, p, n))


@in_one_case(name=losses.names())
def test_at_coincident_points_there_is_no_direction(name):
    loss, x = losses.create(name), torch.tensor([0.3, 0.4], dtype=torch.float64)
    y = torch.tensor([1.0, 0.0], dtype=torch.float64)
    for points in ((x, x, y), (x, y, x), (y, x, x), (x, x, x)):
        for whole, autograd in zip(field_table(loss, *points).forces, forces(loss, *points), strict=True):
            torch.testing.assert_close(whole, autograd)


@in_one_case(probe=PROBES, name=losses.names())
def test_a_scanned_place_feels_what_the_point_itself_would(name, probe):
    loss, points = losses.create(name), dict(zip(PROBES, (x[0] for x in random_triplets(1, 2, 3)), strict=True))
    at = random_triplets(300, 2, 4)[0]
    at[:3] = torch.stack(list(points.values()))  # the probe at each of the points
    field = field_table(loss, *points.values(), probe=probe, at=at)
    moved = [at if k == probe else x.expand_as(at) for k, x in points.items()]
    torch.testing.assert_close(field.force, forces(loss, *moved)[PROBES.index(probe)])
    torch.testing.assert_close(field.raw, loss.raw(*moved))
    torch.testing.assert_close(field.energy, loss.clamped(*moved))


def test_a_scan_has_rows_of_y_and_columns_of_x():
    loss, (a, p, n) = losses.create("ranking"), (x[0] for x in random_triplets(1, 2))
    x, y = torch.tensor([0.0, 1.0, 2.0]).double(), torch.tensor([5.0, 6.0]).double()
    field = scan(loss, a, p, n, x=x, y=y)
    assert field.force.shape == (2, 3, 2)
    assert field.raw[1, 2] == loss.raw(a, p, torch.tensor([2.0, 6.0]).double())


def test_an_unknown_probe_is_named():
    loss, (a, p, n) = losses.create("ranking"), (x[0] for x in random_triplets(1, 2))
    with pytest.raises(ValueError, match="probe must be anchor, positive or negative, got 'proxy'"):
        field_table(loss, a, p, n, probe="proxy", at=a)


@in_one_case(probe=PROBES, name=losses.names())
def test_one_pass_says_the_same_as_three(name, probe):
    loss, points = losses.create(name), [x[0] for x in random_triplets(1, 2, 7)]
    at, reach = random_triplets(50, 2, 8)[0].numpy(), np.linspace(0.1, 2, 20)
    view = snapshot(loss, torch.stack(points).numpy(), probe=probe, at=at, reach=reach)
    field = field_table(loss, *points, probe=probe, at=torch.from_numpy(at))
    triplet = field_table(loss, *points, probe=probe)
    scanned, whole = ("raw", "energy", "active", "force", "size"), ("residuals", "forces", "strengths")
    for seen, expected, parts in ((view.field, field, scanned), (view.triplet, triplet, scanned + whole)):
        for part in parts:
            torch.testing.assert_close(getattr(seen, part), getattr(expected, part), rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match=f"the force on its {probe} alone"):
        _ = field.forces


@in_one_case(name=["ranking", "distance_sensitive", "npairs"], clamp=[True, False])
def test_more_places_than_fit_at_once_change_nothing(name, clamp):
    loss, (a, p, n) = losses.create(name), (x[0] for x in random_triplets(1, 2, 5))
    at = random_triplets(CHUNK + 7, 2, 6)[0]
    whole = field_table(loss, a, p, n, at=at, clamp=clamp, both_orders=True)
    for place in (0, CHUNK - 1, CHUNK, CHUNK + 6):
        one = field_table(loss, a, p, n, at=at[place], clamp=clamp, both_orders=True)
        torch.testing.assert_close(whole.raw[place], one.raw)
        torch.testing.assert_close(whole.force[place], one.force)


@pytest.mark.parametrize(
    ("s", "r", "rho"),
    [(0, 0, 1), (1, 2, 1), (0.5, 1, 2), (2, -1, 0.5), (-0.5, 0, 1), (-1, 2, 1), (-2, 2, 1), (-3, 1, 2)],
)
def test_laws_of_the_distance_sensitive_loss_are_powers_whatever_the_triplet(s, r, rho):
    loss, d = losses.create("distance_sensitive", s=s, r=r, rho=rho), np.linspace(0.1, 3, 30)
    for seed in range(3):
        points = torch.stack([x[0] for x in random_triplets(1, 2, seed)]).numpy()
        found = snapshot(loss, points, probe="anchor", at=np.zeros((1, 2)), reach=d).laws
        np.testing.assert_allclose(found, [d**s, rho * d**-r, rho * d**-r], rtol=1e-12)


def test_streamlets_of_a_rotation_are_circles_and_stop_at_the_edge():
    x = (np.arange(101) + 0.5) / 101 - 0.5
    u, v = np.meshgrid(x, x)
    lines = streamlets(np.stack((-v, u), axis=-1), seeds=12, reach=1.0, steps=8)
    radius = np.linalg.norm(lines - 0.5, axis=-1)
    whole = (np.abs(lines - 0.5).max((1, 2)) < 0.49) & (radius.min(1) > 0.05)
    assert whole.sum() > 80
    assert np.ptp(radius[whole], axis=1).max() < 2e-3
    length = np.linalg.norm(np.diff(lines[whole], axis=1), axis=-1).sum(1)
    np.testing.assert_allclose(length, 2 / 12, rtol=0.01)


def test_streamlets_leave_out_places_without_force():
    force = np.zeros((40, 40, 2))
    assert len(streamlets(force)) == 0
    force[:, 20:, 0] = 1.0
    assert 0 < len(streamlets(force, seeds=10)) <= 60
