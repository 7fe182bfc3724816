"""Plane of features as mixtures of three colours, and the characteristic prototypes of a class."""

import numpy as np
import pytest

from dmlcore.pooling.analysis.colour_plane import ColourPlane, characteristic_prototypes
from dmlcore.pooling.analysis.red_blue import STEPS, mixture

POINTS = np.random.default_rng(3).normal(size=(200, 2)) * (0.4, 1.5)


def test_distances_of_mixtures_are_those_of_points_up_to_one_factor():
    plane = ColourPlane.about(POINTS, POINTS[0])
    colours = mixture(plane.mixtures(POINTS))  # raises an error outside the triangle
    between = np.linalg.norm(colours[:, None] - colours, axis=-1)
    given = np.linalg.norm(POINTS[:, None] - POINTS, axis=-1)
    far = given > 2
    ratio = between[far] / given[far]
    # A red or blue step is 1 / 160; two roundings of half a step each move a mixture by up to 0.006 sqrt 2.
    assert np.abs(between - ratio.mean() * given).max() < 0.02
    assert ratio.std() / ratio.mean() < 0.02
    assert sorted(colours.min(0))[1] == pytest.approx(0, abs=0.01)  # two sides touch: the third has room for half


@pytest.mark.parametrize("length", [0.2, 2.0])
def test_green_falls_towards_a_place_and_is_half_on_the_way(length):
    place = POINTS.mean(0) + length * np.array([0.6, 0.8])
    plane = ColourPlane.about(POINTS, place)
    green = (STEPS - plane.mixtures(POINTS).sum(-1)) / STEPS
    along = (POINTS - POINTS.mean(0)) @ (0.6, 0.8)
    assert np.corrcoef(green, along)[0, 1] < -0.999
    assert (green < 0.5)[along > length / 2 + 0.1].all()
    assert (green > 0.5)[along < length / 2 - 0.1].all()


def test_one_point_and_wrong_shapes():
    plane = ColourPlane.about([[1.0, 2.0]], [1.0, 2.0])
    assert plane.mixtures([1.0, 2.0]).tolist() == [53, 53]
    with pytest.raises(ValueError, match="points must be"):
        ColourPlane.about(np.zeros((2, 3)), [0.0, 0.0])
    with pytest.raises(ValueError, match="informative must be"):
        ColourPlane.about(POINTS, [np.nan, 0.0])


def test_prototypes_tell_a_class_by_their_surplus():
    histograms = [[0.5, 0.5, 0, 0], [0.5, 0.3, 0.2, 0], [0.4, 0.1, 0, 0.5], [0.6, 0, 0, 0.4]]
    assert characteristic_prototypes(histograms, [0, 0, 1, 1], 0, 3).tolist() == [1, 2]
    assert characteristic_prototypes(histograms, [0, 0, 1, 1], 1, 3).tolist() == [3]
    assert characteristic_prototypes(histograms, [0, 0, 0, 0], 0, 3).tolist() == [
        0
    ]  # a single class has no characteristic prototypes
    with pytest.raises(ValueError, match="no image has 7"):
        characteristic_prototypes(histograms, [0, 0, 1, 1], 7, 3)
