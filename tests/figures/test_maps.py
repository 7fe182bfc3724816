"""Maps of embeddings: points in screen precision, colours that differ from the background, and a lasso."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.path import Path

from dmlcore.figures.maps import Sheet, in_square, luminance, palette
from tests.members import in_one_case

LIGHT, DARK = 1.0, luminance("#12161C")


def contrast(one: float, other: float) -> float:
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)


@in_one_case(classes=[1, 8, 9, 16, 50, 100, 200])
def test_every_colour_stands_out_from_both_papers_and_the_others(classes):
    colours = palette(classes)
    assert len(set(colours)) == len(colours) == classes
    for colour in colours:
        assert contrast(luminance(colour), LIGHT) >= 3
        assert contrast(luminance(colour), DARK) >= 3


def test_thousands_of_classes_share_colours():
    colours = palette(11_316)
    assert len(set(colours)) == 256
    assert colours[256:512] == colours[:256]


@pytest.mark.parametrize(
    ("colour", "expected"), [("#000000", 0), ("#FFFFFF", 1), ("#FF0000", 0.2126), ("#808080", 0.2159)]
)
def test_luminance_is_that_of_wcag(colour, expected):
    assert luminance(colour) == pytest.approx(expected, abs=1e-4)


def test_a_sheet_holds_the_points():
    random = np.random.default_rng(0)
    points = random.normal(size=(500, 2)) * [30, 5] + [7, -90]
    labels, indices = random.choice([4, 17, 90], 500), random.permutation(10_000)[:500]
    sheet = Sheet.of(points, labels, indices)
    assert (sheet.indices == indices).all()
    assert sheet.labels.tolist() == [4, 17, 90]
    assert (sheet.labels[sheet.group] == labels).all()
    assert sheet.counts.tolist() == [int((labels == c).sum()) for c in sheet.labels]
    assert sheet.frames.dtype == np.uint16
    # one scale for both axes: shown = a * points + b
    a = np.ptp(sheet.frames[0][:, 0].astype(float)) / np.ptp(points[:, 0])
    assert np.ptp(sheet.frames[0] - a * points, axis=0) == pytest.approx([0, 0], abs=2)  # positions are rounded


def test_a_name_stands_on_the_most_central_point_of_its_class():
    random = np.random.default_rng(1)
    points, labels = random.normal(size=(301, 2)), random.integers(0, 7, 301)
    sheet = Sheet.of(points, labels, np.arange(301))
    for label, row in zip(sheet.labels, sheet.central, strict=True):
        of = np.flatnonzero(labels == label)
        shown = sheet.frames[0][of].astype(float)
        away = np.linalg.norm(shown - np.median(shown, axis=0), axis=1)
        assert row in of
        assert away[of == row] == away.min()


@pytest.mark.parametrize("points", [np.zeros((5, 2)), np.array([[3.0, 4.0]]), np.eye(2) * 1e30])
def test_collapsed_few_or_huge_points_stay_inside(points):
    square = in_square(points)
    assert np.isfinite(square).all()
    assert ((square >= 0) & (square <= 1)).all()


def test_new_points_lie_among_those_that_fill_the_square():
    points = np.random.default_rng(0).normal(size=(20, 2)) * (3, 1)
    np.testing.assert_allclose(in_square(points[:4], points), in_square(points)[:4])
    assert in_square(points.max(axis=0)[None] + 9, points).max() > 1


@pytest.mark.parametrize(
    ("points", "labels"),
    [
        (np.zeros((3, 2)), np.zeros(4, int)),
        (np.full((3, 2), np.nan), np.zeros(3, int)),
        (np.zeros((0, 2)), np.zeros(0, int)),
        (np.zeros((2, 3, 2)), np.zeros(2, int)),
    ],
)
def test_what_does_not_fit_is_refused(points, labels):
    with pytest.raises(ValueError, match="points"):
        Sheet.of(points, labels, np.arange(len(labels)))


@pytest.fixture(scope="module")
def crowd() -> Sheet:
    random = np.random.default_rng(3)
    return Sheet.of(random.normal(size=(2, 20_000, 2)), random.integers(0, 5, 20_000), np.arange(20_000) * 2)


@pytest.mark.parametrize("corners", [3, 5, 64])
@pytest.mark.parametrize("frame", [0, 1])
def test_a_lasso_finds_what_matplotlib_finds(crowd, corners, frame):
    turn = np.linspace(0, 2 * np.pi, corners, endpoint=False)
    # a star-shaped polygon around the centre
    reach = np.random.default_rng(corners).uniform(4_000, 30_000, (corners, 1))
    polygon = np.rint(32_768 + reach * np.column_stack([np.cos(turn), np.sin(turn)])).astype(int)
    points = crowd.frames[frame].astype(float)
    near = np.zeros(len(points), bool)  # exclude points at the boundary, where matplotlib rounds
    for one, other in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        along = np.clip((points - one) @ (other - one) / ((other - one) ** 2).sum(), 0, 1)
        near |= np.linalg.norm(points - one - along[:, None] * (other - one), axis=1) < 0.6
    expected = Path(polygon).contains_points(points)
    found = np.zeros(len(points), bool)
    found[crowd.enclosed(polygon, frame)] = True
    assert found.sum() > 100
    assert (found == expected)[~near].all()


def test_the_overlap_of_a_lasso_that_crosses_itself_is_inside(crowd):
    twice = np.array([[20_000, 20_000], [50_000, 20_000], [50_000, 50_000], [20_000, 50_000]] * 2)
    once = crowd.enclosed(twice[:4])
    assert len(once)
    assert (crowd.enclosed(twice) == once).all()
    assert (crowd.enclosed(twice[::-1]) == crowd.enclosed(twice[:4][::-1])).all()


@pytest.mark.parametrize("polygon", [np.zeros((2, 2), int), np.zeros((5, 3), int), np.zeros(6, int)])
def test_what_encloses_nothing_is_no_lasso(crowd, polygon):
    with pytest.raises(ValueError, match="lasso"):
        crowd.enclosed(polygon)
