"""Geometry of the toy shapes: moons and rings."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import dmlcore.data
from dmlcore.data.synthetic import shapes


@pytest.mark.parametrize("name", ["moons", "rings"])
def test_eight_classes_of_200_points_drawn_from_the_seed(name):
    dataset = dmlcore.data.load(name)
    assert dataset.inputs.shape == (1600, 3)
    assert np.bincount(dataset.labels).tolist() == [200] * 8
    assert len(set(dataset.class_names)) == 8
    assert not np.array_equal(dataset.inputs, dmlcore.data.load(name, seed=1).inputs)


def test_a_moon_lies_about_half_a_circle_in_the_plane_of_its_pair():
    points = np.asarray(dmlcore.data.load("moons").inputs, np.float64).reshape(4, 2, 200, 3)
    for pair in range(4):
        turn = pair * np.pi / 4
        along, across = np.array([np.cos(turn), np.sin(turn)]), np.array([-np.sin(turn), np.cos(turn)])
        for moon, centre in ((0, (-0.5, -0.25)), (1, (0.5, 0.25))):
            flat, height = points[pair, moon, :, :2], points[pair, moon, :, 2]
            distances = np.linalg.norm(flat - centre[0] * along - centre[1] * across, axis=1)
            # A point off the circle by noise in both directions is 0.005 farther on average; 5 standard errors.
            assert distances.mean() == pytest.approx(1.005, abs=0.036)
            assert distances.std() == pytest.approx(0.1, abs=0.025)
            assert height.mean() == pytest.approx(0.5 * pair, abs=0.036)
            assert height.std() == pytest.approx(0.1, abs=0.025)
            beyond = (flat @ across - centre[1]) * (1 if moon == 0 else -1)
            assert (beyond > -0.45).all()  # upper and lower half


def test_no_line_separates_the_moons_of_a_pair():
    from sklearn.linear_model import LogisticRegression

    dataset = dmlcore.data.load("moons")
    for pair in range(4):
        rows = dataset.labels // 2 == pair
        points, moon = dataset.inputs[rows], dataset.labels[rows] % 2
        linear = LogisticRegression().fit(points, moon).score(points, moon)
        assert 0.8 < linear < 0.95
        nearest = np.argsort(cdist(points, points), axis=1)[:, 1]
        assert (moon[nearest] == moon).mean() > 0.98


def linking_number(first, second):
    """Return Gauss's linking integral over two closed curves (n, 3)."""
    a, b = np.roll(first, -1, axis=0) - first, np.roll(second, -1, axis=0) - second
    between = (first + a / 2)[:, None] - (second + b / 2)[None]
    crossed = np.cross(a[:, None], b[None])
    return ((between * crossed).sum(-1) / np.linalg.norm(between, axis=-1) ** 3).sum() / (4 * np.pi)


def test_each_ring_is_linked_with_its_two_neighbours_and_no_other():
    angles = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    rings = [shapes.ring(label, angles) for label in range(8)]
    for a in range(8):
        for b in range(a):
            neighbours = (a - b) in (1, 7)
            assert abs(linking_number(rings[a], rings[b])) == pytest.approx(float(neighbours), abs=0.01)
            assert cdist(rings[a], rings[b]).min() > 6 * shapes.RING_NOISE


def test_the_points_scatter_about_their_ring():
    dataset = dmlcore.data.load("rings")
    angles = np.arange(200) * 2 * np.pi / 200
    for label in range(8):
        off = dataset.inputs[dataset.labels == label] - shapes.ring(label, angles)
        assert off.mean(axis=0) == pytest.approx(0, abs=5 * 0.1 / np.sqrt(200))
        assert np.cov(off.T) == pytest.approx(shapes.RING_NOISE**2 * np.eye(3), abs=5 * 0.01 * np.sqrt(2 / 200))
