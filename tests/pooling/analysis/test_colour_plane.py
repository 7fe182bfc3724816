"""A plane of features as mixtures of three colours, and the prototypes that tell a class."""

import numpy as np
import pytest

from dmlcore.pooling.analysis.colour_plane import ColourPlane, telling
from dmlcore.pooling.analysis.red_blue import STEPS, mixture

POINTS = np.random.default_rng(3).normal(size=(200, 2)) * (0.4, 1.5)


def test_distances_of_mixtures_are_those_of_points_up_to_one_factor():
    plane = ColourPlane.about(POINTS, POINTS[0])
    colours = mixture(plane.mixtures(POINTS))  # refuses what lies outside the triangle
    between = np.linalg.norm(colours[:, None] - colours, axis=-1)
    given = np.linalg.norm(POINTS[:, None] - POINTS, axis=-1)
    far = given > 2
    ratio = between[far] / given[far]
    # A red or blue step is 1 / 160; two roundings of half a step each move a mixture by up to 0.006 sqrt 2.
    assert np.abs(between - ratio.mean() * given).max() < 0.02
    assert ratio.std() / ratio.mean() < 0.02
    assert colours.min(0) == pytest.approx(np.zeros(3), abs=0.01)  # none smaller is about them all


def test_green_grows_towards_its_corner_alone():
    plane = ColourPlane.about(POINTS, POINTS.mean(0) + np.array([3.0, 4.0]))
    green = STEPS - plane.mixtures(POINTS).sum(-1)
    along = (POINTS - POINTS.mean(0)) @ (0.6, 0.8)
    assert np.corrcoef(green, along)[0, 1] > 0.999


def test_one_point_and_wrong_shapes():
    plane = ColourPlane.about([[1.0, 2.0]], [1.0, 2.0])
    assert plane.mixtures([1.0, 2.0]).tolist() == [53, 53]
    with pytest.raises(ValueError, match="points must be"):
        ColourPlane.about(np.zeros((2, 3)), [0.0, 0.0])
    with pytest.raises(ValueError, match="green must be"):
        ColourPlane.about(POINTS, [np.nan, 0.0])


def test_prototypes_tell_a_class_by_their_surplus():
    histograms = [[0.5, 0.5, 0, 0], [0.5, 0.3, 0.2, 0], [0.4, 0.1, 0, 0.5], [0.6, 0, 0, 0.4]]
    assert telling(histograms, [0, 0, 1, 1], 0, 3).tolist() == [1, 2]
    assert telling(histograms, [0, 0, 1, 1], 1, 3).tolist() == [3]
    assert telling(histograms, [0, 0, 0, 0], 0, 3).tolist() == [0]  # one class: nothing tells it from itself
    with pytest.raises(ValueError, match="no image has 7"):
        telling(histograms, [0, 0, 1, 1], 7, 3)
