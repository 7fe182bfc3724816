"""Forces and scans on circle and sphere compared with finite differences along geodesics, and conversion of angles."""

from __future__ import annotations

import math

import pytest
import torch

from dmlcore import losses
from dmlcore.geometry import forces
from dmlcore.geometry.sphere import (
    angle_map,
    angles,
    central_angle,
    fibonacci_sphere,
    on_circle,
    on_sphere,
    random_triplets,
    raw_on_sphere,
    scan_sphere,
    sphere_forces,
    tangent,
)
from tests.members import in_one_case

PROBES = ("anchor", "positive", "negative")
# These settings make every triplet on the sphere active, so that the clamp hides no force.
OPEN = {"ratio": {"m": 3.0}, "distance_sensitive": {"m1": 4.0, "m2": None}, "facenet_mined": {"m": 9.0}, "moving": {}}


def active_loss(name: str) -> losses.TripletLoss:
    formula = losses.formula(name)
    hyper = OPEN.get(name, {formula.margin.name: 40.0} if formula.margin else {})
    return losses.create(name, **hyper)


def moved(point: torch.Tensor, direction: torch.Tensor, by: float) -> torch.Tensor:
    """Move a point along the great circle that starts in the unit tangent `direction`."""
    return math.cos(by) * point + math.sin(by) * direction


@in_one_case(name=losses.names(), dimension=[2, 3, 16])
def test_tangential_forces_are_the_slope_of_the_loss_along_the_sphere(name, dimension):
    loss = active_loss(name)
    triplets = random_triplets(40, dimension, seed=3)
    found = sphere_forces(loss, *triplets)
    step, checked = 1e-6, 0
    headings = random_triplets(40, dimension, seed=9)
    for k in range(3):
        direction = tangent(headings[k], triplets[k])
        direction = direction / direction.norm(dim=-1, keepdim=True)
        ends = []
        for by in (step, -step):
            points = list(triplets)
            points[k] = moved(points[k], direction, by)
            ends.append(loss.clamped(*points))
        slope = (ends[0] - ends[1]) / (2 * step)
        expected = -(found.tangential[k] * direction).sum(-1)
        raw = loss.raw(*triplets)
        inside = (raw > 1e-3) & (raw < loss.m2 - 1e-3)
        torch.testing.assert_close(slope[inside], expected[inside], rtol=2e-4, atol=2e-7)
        checked += int(inside.sum())
    assert checked > 30


@in_one_case(name=losses.names())
def test_tangential_and_radial_parts_make_up_the_force(name):
    loss = active_loss(name)
    triplets = random_triplets(60, 3, seed=5)
    found = sphere_forces(loss, *triplets)
    for point, whole, along, outward in zip(
        triplets, forces(loss, *triplets), found.tangential, found.radial, strict=True
    ):
        size = whole.norm(dim=-1).clamp(min=1)
        assert ((along * point).sum(-1).abs() / size).max() < 1e-14
        assert ((along + outward[:, None] * point - whole).norm(dim=-1) / size).max() < 1e-14


@in_one_case(dimension=[2, 3], probe=PROBES)
def test_a_scan_is_the_forces_with_the_probe_put_there(probe, dimension):
    loss = losses.create("distance_sensitive")
    at = torch.tensor([0.0, 0.9, 2.0], dtype=torch.float64)
    a, p, n = on_circle(at) if dimension == 2 else on_sphere(at, 0.3 * at)
    nodes = random_triplets(50, dimension, seed=4)[0]
    field = scan_sphere(loss, a, p, n, probe=probe, nodes=nodes)
    fixed = dict(zip(PROBES, (a, p, n), strict=True))
    for i, node in enumerate(nodes):
        points = list((fixed | {probe: node}).values())
        found = sphere_forces(loss, *points)
        k = PROBES.index(probe)
        assert field.raw[i] == pytest.approx(float(loss.raw(*points)), rel=1e-12)
        assert field.energy[i] == pytest.approx(float(loss.clamped(*points)), rel=1e-12)
        assert bool(field.active[i]) == (0 < float(loss.raw(*points)) < loss.m2)
        torch.testing.assert_close(field.tangential[i], found.tangential[k], rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(field.radial[i], found.radial[k], rtol=1e-10, atol=1e-12)
    assert 0 < int(field.active.sum()) < 50
    torch.testing.assert_close(raw_on_sphere(loss, a, p, n, probe=probe, nodes=nodes), field.raw)


@in_one_case(name=losses.names())
def test_the_angle_map_holds_for_every_place_of_the_anchor(name):
    loss = losses.create(name)
    delta_p, delta_n = torch.linspace(-3.1, 3.1, 11).double(), torch.linspace(-3.0, 2.9, 8).double()
    raw = angle_map(loss, delta_p, delta_n)
    assert raw.shape == (8, 11)
    for anchor in (0.0, 0.7, -2.5):
        at = torch.tensor(anchor, dtype=torch.float64)
        for row in (0, 3, 7):
            for col in (0, 4, 10):
                triplet = on_circle(at), on_circle(at + delta_p[col]), on_circle(at + delta_n[row])
                assert raw[row, col] == pytest.approx(float(loss.raw(*triplet)), rel=1e-10, abs=1e-12)


def test_angles_lead_there_and_back():
    longitude, latitude = torch.tensor([0.3, -2.9, 3.0, 1.0]).double(), torch.tensor([0.1, -1.5, 1.2, 0.0]).double()
    torch.testing.assert_close(angles(on_sphere(longitude, latitude)), torch.stack([longitude, latitude], -1))
    torch.testing.assert_close(angles(on_circle(longitude))[:, 0], longitude)
    with pytest.raises(ValueError, match="2 or 3 coordinates"):
        angles(torch.zeros(5, 4))


def test_central_angles_keep_their_digits_at_both_ends():
    base = on_circle(torch.tensor(0.0, dtype=torch.float64))
    for angle in (1e-9, 0.5, math.pi - 1e-9, math.pi):
        found = central_angle(base, on_circle(torch.tensor(angle, dtype=torch.float64)))
        assert float(found) == pytest.approx(angle, rel=1e-6)


def test_fibonacci_nodes_are_spread_evenly():
    nodes = fibonacci_sphere(360)
    assert nodes.norm(dim=-1) == pytest.approx(1)
    nearest = (torch.cdist(nodes, nodes) + 9 * torch.eye(360)).min(dim=1).values
    assert float(nearest.min()) > 0.6 * math.sqrt(4 * math.pi / 360)
    assert nodes.mean(dim=0).abs().max() < 0.01


@in_one_case(which=[0, 1, 2])
def test_a_point_off_the_sphere_is_named(which):
    triplet = [x[0] for x in random_triplets(1, 3)]
    triplet[which] = 1.01 * triplet[which]
    with pytest.raises(ValueError, match=PROBES[which]):
        sphere_forces(losses.create("ranking"), *triplet)


def test_an_unknown_probe_is_named():
    triplet = [x[0] for x in random_triplets(1, 3)]
    for call in (scan_sphere, raw_on_sphere):
        with pytest.raises(ValueError, match="probe must be"):
            call(losses.create("ranking"), *triplet, probe="centre", nodes=fibonacci_sphere(5))
