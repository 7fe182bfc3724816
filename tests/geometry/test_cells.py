"""Voronoi cells: every point of an outline is in the cell of its nearest site."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.path import Path

from dmlcore.geometry.cells import voronoi_cells
from tests.members import in_one_case

TRIANGLE = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.9]])


def area(polygon) -> float:
    x, y = polygon.T if len(polygon) else np.zeros((2, 1))
    return abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))) / 2


@in_one_case(count=[1, 2, 5, 8])
def test_cells_share_the_outline_by_the_nearest_site(count):
    generator = np.random.default_rng(count)
    draw = lambda n: np.stack([generator.dirichlet([1, 1, 1]) @ TRIANGLE for _ in range(n)])  # noqa: E731
    sites, points = draw(count), draw(400)
    cells = voronoi_cells(sites, TRIANGLE)
    assert sum(map(area, cells)) == pytest.approx(area(TRIANGLE))
    distance = np.linalg.norm(points[:, None] - sites, axis=-1)
    nearest, gap = distance.argmin(1), np.diff(np.sort(distance, axis=1)[:, :2], axis=1)
    for point, owner, apart in zip(points, nearest, gap if count > 1 else np.ones((400, 1)), strict=True):
        if apart[0] > 1e-9:
            assert Path(cells[owner]).contains_point(point, radius=1e-9) or Path(cells[owner]).contains_point(
                point, radius=-1e-9
            )


def test_coincident_sites_have_one_cell():
    cells = voronoi_cells(np.array([[0.2, 0.1], [0.2, 0.1], [0.7, 0.1]]), TRIANGLE)
    assert len(cells[1]) == 0
    assert area(cells[0]) + area(cells[2]) == pytest.approx(area(TRIANGLE))
