"""Maps of embeddings: points packed without loss that a screen could show, colours that can be told from the paper."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from dmlcore.figures.maps import class_map, in_square, luminance, palette

LIGHT, DARK = 1.0, luminance("#12161C")


def contrast(one: float, other: float) -> float:
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)


@pytest.mark.parametrize("classes", [1, 8, 9, 16, 50, 100, 200])
def test_every_colour_stands_out_from_both_papers_and_the_others(classes):
    colours = palette(classes)
    assert len(set(colours)) == len(colours) == classes
    for colour in colours:
        assert contrast(luminance(colour), LIGHT) >= 3
        assert contrast(luminance(colour), DARK) >= 3


@pytest.mark.parametrize(
    ("colour", "expected"), [("#000000", 0), ("#FFFFFF", 1), ("#FF0000", 0.2126), ("#808080", 0.2159)]
)
def test_luminance_is_that_of_wcag(colour, expected):
    assert luminance(colour) == pytest.approx(expected, abs=1e-4)


def test_packed_points_are_the_points():
    random = np.random.default_rng(0)
    points = random.normal(size=(500, 2)) * [30, 5] + [7, -90]
    labels, indices = random.choice([4, 17, 90], 500), random.permutation(10_000)[:500]
    figure = class_map(points, labels, indices, lambda label: f"c{label}")
    packed = np.frombuffer(base64.b64decode(figure["points"]), "<u2").reshape(-1, 3)
    assert (np.frombuffer(base64.b64decode(figure["indices"]), "<i4") == indices).all()
    classes = figure["classes"]
    assert [c["name"] for c in classes] == ["c4", "c17", "c90"]
    assert [classes[place]["label"] for place in packed[:, 2]] == labels.tolist()
    assert [c["count"] for c in classes] == [int((labels == c["label"]).sum()) for c in classes]
    # one scale for both axes: packed = a * points + b
    a = (packed[1, 0] - packed[0, 0]) / (points[1, 0] - points[0, 0])
    assert np.ptp(packed[:, :2] - a * points, axis=0) == pytest.approx([0, 0], abs=200)
    fit = np.polyfit(points[:, 1], packed[:, 1], 1)[0] / np.polyfit(points[:, 0], packed[:, 0], 1)[0]
    assert fit == pytest.approx(1, rel=1e-3)


def test_a_name_stands_on_a_point_of_its_class():
    ring = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    points = np.column_stack([np.cos(ring), np.sin(ring)])  # whose median is the empty middle
    figure = class_map(points, np.zeros(40, int), np.arange(40), str)
    square = in_square(points)
    at = np.array([figure["classes"][0]["x"], figure["classes"][0]["y"]])
    assert np.linalg.norm(square - at, axis=1).min() < 1e-4


@pytest.mark.parametrize("points", [np.zeros((5, 2)), np.array([[3.0, 4.0]]), np.eye(2) * 1e30])
def test_collapsed_few_or_huge_points_stay_inside(points):
    square = in_square(points)
    assert np.isfinite(square).all()
    assert ((square >= 0) & (square <= 1)).all()


@pytest.mark.parametrize(
    ("points", "labels"),
    [
        (np.zeros((3, 2)), np.zeros(4, int)),
        (np.full((3, 2), np.nan), np.zeros(3, int)),
        (np.zeros((0, 2)), np.zeros(0, int)),
    ],
)
def test_what_does_not_fit_is_refused(points, labels):
    with pytest.raises(ValueError, match="points"):
        class_map(points, labels, np.arange(len(labels)), str)
