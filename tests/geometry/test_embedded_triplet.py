"""The plane of three embeddings is exact in any dimension: distances, energies and forces."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from dmlcore import losses
from dmlcore.geometry import forces
from dmlcore.geometry.embedded_triplet import EmbeddedTriplet, embed, forces_in_plane, needs_origin, remarks
from dmlcore.geometry.sphere import random_triplets, sphere_forces
from dmlcore.loss_analysis.offset_plane import OffsetPlaneLoss
from tests.members import in_one_case

# These settings make every triplet active, so that the clamp hides no force.
OPEN = {"ratio": {"m": 3.0}, "distance_sensitive": {"m1": 40.0, "m2": None}, "facenet_mined": {"m": 90.0}}
EXACT = 1e-9


def open_loss(name: str) -> losses.TripletLoss:
    margin = losses.formula(name).margin
    return losses.create(name, **OPEN.get(name, {margin.name: 90.0} if margin else {}))


def triplets(dimension: int, *, unit: bool, count: int = 6, seed: int = 0):
    """Return clustered unit vectors, as a trained network produces them, or vectors of any length."""
    drawn = torch.stack(random_triplets(count, dimension, seed)).movedim(0, 1).numpy()
    near = drawn[:1, :1] + 0.6 * drawn
    return near / np.linalg.norm(near, axis=-1, keepdims=True) if unit else 1.7 * near


def whole(triplet: EmbeddedTriplet, found) -> np.ndarray:
    return triplet.lift_vectors(found.in_plane, found.off_plane)


@in_one_case(unit=[True, False], dimension=[2, 3, 64, 128])
def test_the_plane_keeps_distances_norms_and_leads_back(dimension, unit):
    for x in triplets(dimension, unit=unit):
        found = embed(*x)
        distance = np.linalg.norm(x[:, None] - x[None], axis=-1)
        shown = np.linalg.norm(found.points[:, None] - found.points[None], axis=-1)
        assert np.abs(distance - shown).max() < 1e-13
        assert np.abs(found.lengths - np.linalg.norm(x, axis=1)).max() < 1e-13
        assert np.abs(found.points @ found.points.T + found.height**2 - x @ x.T).max() < 1e-13
        assert np.abs(found.lift_points(found.points) - x).max() < 1e-13
        assert np.abs(found.basis @ found.basis.T - np.eye(2)).max() < 1e-13
        assert np.abs(found.basis @ found.normal).max() < 1e-13
        a, p, n = found.points
        assert p[0] > a[0]
        assert p[1] == pytest.approx(a[1])
        assert n[1] > a[1]
        if unit:  # the sphere intersects the plane in a circle around the foot
            assert np.hypot(*found.points.T) == pytest.approx(math.sqrt(1 - found.height**2))


@in_one_case(name=losses.names(), case=[(64, True), (128, False)])
def test_forces_of_the_plane_are_those_of_autograd_among_the_embeddings(name, case):
    """Compare energy, force, and its radial and tangential parts to 1e-9 of the largest force."""
    dimension, unit = case
    loss = open_loss(name)
    for x in triplets(dimension, unit=unit):
        if name == "facenet_mined" and np.linalg.norm(x[0] - x[1]) > np.linalg.norm(x[0] - x[2]):
            x = x[[0, 2, 1]]  # active only if the negative is farther away than the positive
        triplet, points = embed(*x), [torch.from_numpy(row) for row in x]
        found = forces_in_plane(loss, triplet)
        expected = np.stack([f.numpy() for f in forces(loss, *points)])
        size = max(1.0, np.abs(expected).max())
        assert found.active
        assert np.abs(expected).max() > 1e-3
        assert found.raw == pytest.approx(float(loss.raw(*points)), rel=EXACT)
        assert np.abs(whole(triplet, found) - expected).max() < EXACT * size
        assert np.abs(found.sizes - np.linalg.norm(expected, axis=1)).max() < EXACT * size
        outward = x / np.linalg.norm(x, axis=1, keepdims=True)
        assert np.abs(found.radial - (expected * outward).sum(1)).max() < EXACT * size
        if unit:
            sphere = sphere_forces(loss, *points)
            tangential = triplet.lift_vectors(found.tangential, found.tangential_off)
            assert np.abs(tangential - np.stack([t.numpy() for t in sphere.tangential])).max() < EXACT * size
            assert found.tangential_sizes == pytest.approx(np.linalg.norm(tangential, axis=1), abs=EXACT * size)


@in_one_case(name=losses.names())
def test_a_loss_of_distances_keeps_its_forces_in_the_plane_and_the_others_are_named(name):
    loss = open_loss(name)
    assert needs_origin(loss) == (name in ("npairs", "moving", "location_aware"))
    (x,) = triplets(16, unit=False, count=1)
    triplet = embed(*x)
    assert triplet.height > 0.1
    off = np.abs(forces_in_plane(loss, triplet).off_plane).max()
    assert off > 1e-3 if needs_origin(loss) else off == 0
    # If the plane contains the origin, no force leaves the plane.
    level = x - triplet.height * triplet.normal
    assert np.abs(forces_in_plane(loss, embed(*level)).off_plane).max() < 1e-12


@in_one_case(name=["distance_sensitive", "npairs", "moving", "location_aware"])
def test_a_raised_loss_sees_the_embeddings_from_their_coordinates(name):
    loss = open_loss(name)
    (x,) = triplets(32, unit=False, count=1)
    triplet, unit = embed(*x), 10.0
    seen = OffsetPlaneLoss(loss.formula, triplet.height, unit, **loss.hyper)
    points = [torch.from_numpy(row) for row in triplet.points / unit]
    found = forces_in_plane(loss, triplet)
    assert float(seen.raw(*points)) == pytest.approx(found.raw, rel=EXACT)
    flat = np.stack([f.numpy() for f in forces(seen, *points)])
    assert flat / unit == pytest.approx(found.in_plane, rel=EXACT, abs=EXACT)


@in_one_case(name=losses.names())
def test_degenerate_triplets_have_words_and_no_nan(name):
    loss = losses.create(name)
    e = np.eye(8)
    cases = {
        "All three embeddings are the same": (e[0], e[0], e[0]),
        "A and P have the same embedding": (e[0], e[0], e[1]),
        "P and N have the same embedding": (e[0], e[1], e[1]),
        "on one line": (e[0] + e[1], e[0] + 2 * e[1], e[0] - e[1]),
        "A and N lie opposite": (e[0], e[1], -e[0]),
        "A and P lie opposite": (e[0], -e[0], e[0]),
    }
    for words, x in cases.items():
        triplet = embed(*x)
        assert any(words in remark for remark in remarks(triplet, on_sphere=True)), words
        found = forces_in_plane(loss, triplet)
        expected = np.stack([f.numpy() for f in forces(loss, *(torch.from_numpy(v) for v in x))])
        assert np.isfinite(whole(triplet, found)).all()
        assert whole(triplet, found) == pytest.approx(expected, abs=EXACT * max(1.0, np.abs(expected).max()))
    spread = embed(*triplets(8, unit=True, count=1)[0])
    assert (spread.rank, remarks(spread, on_sphere=True)) == (2, ())


def test_between_opposite_points_the_sphere_takes_the_whole_force():
    e = np.eye(8)
    found = forces_in_plane(losses.create("ranking", m=2.5), embed(e[0], e[1], -e[0]))
    assert found.active
    assert found.radial[2] == pytest.approx(1.0)
    assert found.tangential_sizes[2] == pytest.approx(0, abs=1e-12)


def test_one_dimension_is_a_line():
    triplet = embed([0.5], [1.0], [-2.0])
    assert (triplet.rank, triplet.height) == (1, 0.0)
    assert triplet.points[:, 0].tolist() == [0.5, 1.0, -2.0]
    assert np.abs(triplet.lift_points(triplet.points) - [[0.5], [1.0], [-2.0]]).max() == 0


@pytest.mark.parametrize(
    ("bad", "words"),
    [(np.zeros((2, 2)), "negative must be a vector"), (np.zeros(3), "negative must be"), ([np.nan, 0.0], "negative")],
)
def test_a_bad_embedding_is_named(bad, words):
    with pytest.raises(ValueError, match=words):
        embed([0.0, 1.0], [1.0, 0.0], bad)
