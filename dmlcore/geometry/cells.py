"""Voronoi cells within a convex outline."""

from __future__ import annotations

import numpy as np

from dmlcore.typing import Floats


def voronoi_cells(sites: Floats, outline: Floats) -> list[Floats]:
    """Compute the Voronoi cell of each site (m, 2) within the convex polygon `outline` (K, 2), as polygons (k, 2).

    If sites coincide, the lowest index gets the cell and the others an empty one, (0, 2). The outline is clipped by the
    bisector with each other site that is near enough (Sutherland & Hodgman 1974).
    """
    cells = []
    for i, site in enumerate(sites):
        cell = np.asarray(outline, dtype=np.float64)
        distances = np.linalg.norm(sites - site, axis=1)
        for j in np.argsort(distances, kind="stable"):
            if not len(cell) or distances[j] > 2 * np.linalg.norm(cell - site, axis=1).max():
                break  # this bisector and all later ones pass beyond the cell
            if i != j:
                same = distances[j] == 0
                cell = cell[:0] if same and j < i else cell if same else _half(cell, site, sites[j])
        cells.append(cell)
    return cells


def _half(polygon: Floats, near: Floats, far: Floats) -> Floats:
    """Return the part of a polygon that is at least as near to `near` as to `far`."""
    excess = (polygon - (near + far) / 2) @ (far - near)
    kept: list[Floats] = []
    for k in range(len(polygon)):
        a, b, at, bt = polygon[k - 1], polygon[k], excess[k - 1], excess[k]
        if (at > 0) != (bt > 0):
            kept.append(a + (b - a) * at / (at - bt))
        if bt <= 0:
            kept.append(b)
    return np.array(kept).reshape(-1, 2)
