"""Contours around dense regions contain the stated share of the points."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.path import Path

from dmlcore.figures.density import SHARES, density_lines
from dmlcore.figures.maps import STEPS


def inside(lines, places):
    """Return True for places inside an odd number of lines, so that holes are excluded."""
    return sum(Path(line).contains_points(places) for line in lines) % 2 == 1


def test_each_region_holds_its_share_and_the_next_one():
    random = np.random.default_rng(0)
    heaps = np.concatenate([random.normal(c, 0.05, (n, 2)) for c, n in ((0.3, 900), (0.7, 300))])
    places = np.rint(np.clip(heaps, 0, 1) * STEPS).astype(np.uint16)
    found = density_lines(places)
    assert [share for share, _ in found] == sorted(SHARES, reverse=True)
    held = [inside(lines, places) for _, lines in found]
    for (share, _), mask in zip(found, held, strict=True):
        assert mask.mean() == pytest.approx(share, abs=0.03)
    for outer, inner in pairwise(held):
        assert not (inner & ~outer).any()
    assert len(found[1][1]) >= 2, "two clusters give two regions"


@pytest.mark.parametrize("places", [np.zeros((0, 2), int), np.zeros((2, 2), int)])
def test_too_few_points_have_no_lines(places):
    assert density_lines(places) == []


def test_points_that_lie_on_each_other_are_no_error():
    for places in (np.full((50, 2), 30_000), np.array([[0, 0], [STEPS, STEPS], [0, STEPS]])):
        assert all(len(line) > 2 for _, lines in density_lines(places) for line in lines)
