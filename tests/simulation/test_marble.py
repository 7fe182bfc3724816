"""A marble follows the force, loses energy at every step, and reports correctly how it ends."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from dmlcore import losses
from dmlcore.geometry.field_table import PROBES
from dmlcore.geometry.loss_variant import Variant
from dmlcore.simulation.marble import STRONGEST, Roll, roll
from tests.members import in_one_case

POINTS = [[0.0, 0.0], [0.5, 0.0], [0.35, 0.3]]
VIEW = (0.25, 0.1, 1.5)


def rolled(name: str, points=POINTS, *, view=VIEW, clamp: bool = True, hyper=None, **options) -> Roll:
    variant = Variant(losses.create(name, **(hyper or {})), clamp=clamp)
    return roll(variant, *torch.tensor(points, dtype=torch.float64), view=view, **options)


def energies(name: str, path: np.ndarray, probe: str) -> np.ndarray:
    """Return the energies on a path, computed by the loss itself."""
    points = dict(zip(PROBES, torch.tensor(POINTS, dtype=torch.float64), strict=True))
    points[probe] = torch.from_numpy(path)
    return losses.create(name).clamped(*points.values()).numpy()


@in_one_case(name=losses.names())
def test_gradient_flow_only_descends_and_its_energies_are_those_of_the_loss(name):
    for probe in PROBES:
        way = rolled(name, probe=probe)
        np.testing.assert_array_equal(way.path[0], POINTS[PROBES.index(probe)])
        expected = energies(name, way.path, probe)
        np.testing.assert_allclose(way.energy, expected, rtol=1e-9, atol=1e-12)
        # A step across a kink may end slightly behind it.
        assert (np.diff(expected) <= 1e-3 * max(1.0, expected[0])).all(), probe
        assert (np.diff(way.times) > 0).all()
        assert way.moved == (len(way.path) > 1)
        if way.moved:
            assert expected[-1] < expected[0], probe
        inside = np.abs(way.path - VIEW[:2]).max(1) <= VIEW[2]
        assert inside[:-1].all()
        assert inside[-1] == (way.ending != "out"), probe
        assert np.hypot(*np.diff(way.path, axis=0).T).max(initial=0) < 3 / 40 * VIEW[2], probe


def test_a_flow_that_is_known_exactly():
    """FaceNet pulls the positive by 2 (a - p), so x = p exp(-2 t) until the loss is 0."""
    way = rolled("facenet", [[0.0, 0.0], [1.2, 0.9], [0.5, 0.0]], probe="positive", hyper={"m": 0.2})
    np.testing.assert_allclose(
        way.path[:-1], np.exp(-2 * way.times[:-1])[:, None] * np.array([[1.2, 0.9]]), atol=2e-3 * VIEW[2]
    )
    assert way.ending == "floor"
    assert math.hypot(*way.path[-1]) == pytest.approx(math.sqrt(0.25 - 0.2), abs=0.04)


@pytest.mark.parametrize(
    ("name", "mass"),
    [
        ("ranking", 0.2),
        ("facenet", 1.0),
        ("distance_sensitive", 0.2),
        ("distance_sensitive", 3.0),
        ("angular", 0.2),
        ("angular", 3.0),
        ("hoffer", 1.0),
    ],
)
def test_friction_takes_energy_from_a_marble_with_momentum(name, mass):
    way = rolled(name, mass=mass)
    total = way.energy + mass * way.speed**2 / 2
    assert (np.diff(total) <= 2e-3 * max(1.0, total[0])).all()
    assert way.speed.max() > 0


def test_momentum_carries_beyond_where_the_loss_lets_go():
    near, far = (rolled("ranking", mass=mass, view=(0.0, 0.0, 4.0)) for mass in (0.0, 1.0))
    assert near.ending == far.ending == "floor"
    assert np.hypot(*far.path[-1]) > np.hypot(*near.path[-1]) + 0.1


@in_one_case(distance=[1e-3, 1e-6, 1e-12, 0.0])
def test_beside_a_pole_the_force_is_bounded(distance):
    way = rolled("distance_sensitive", [[0.0, 0.0], [0.5, 0.0], [distance, 0.0]], clamp=False, hyper={"r": 3.0})
    assert way.moved
    assert np.isfinite(way.path).all()
    assert way.speed.max() == pytest.approx(STRONGEST)


ENDS = [
    ("floor", "ranking", POINTS, {}),
    ("out", "ranking", POINTS, {"clamp": False}),
    ("onto", "ranking", POINTS, {"clamp": False, "probe": "positive"}),
    ("hollow", "distance_sensitive", POINTS, {"probe": "anchor"}),
]


@pytest.mark.parametrize(("ending", "name", "points", "options"), ENDS, ids=[row[0] for row in ENDS])
def test_how_it_ends(ending, name, points, options):
    way = rolled(name, points, **options)
    assert (way.ending, way.moved) == (ending, True)
    assert way.other == ("anchor" if ending == "onto" else None)


def test_on_flat_ground_nothing_moves():
    satisfied = rolled("ranking", [[0.0, 0.0], [0.1, 0.0], [1.0, 0.0]])
    too_hard = rolled("ranking", [[0.0, 0.0], [0.9, 0.0], [0.1, 0.0]], hyper={"m": 0.2, "m2": 0.5})
    assert [satisfied.ending, too_hard.ending] == ["floor", "ceiling"]
    assert not satisfied.moved
    assert not too_hard.moved


@pytest.mark.parametrize(("options", "named"), [({"mass": -1.0}, "mass"), ({"view": (0, 0, 0)}, "view")])
def test_what_makes_no_sense_is_named(options, named):
    with pytest.raises(ValueError, match=named):
        rolled("ranking", **options)
