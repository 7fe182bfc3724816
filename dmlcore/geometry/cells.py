"""Voronoi cells clipped to a convex polygon."""

from __future__ import annotations

import numpy as np

from dmlcore.typing import Floats


def voronoi_cells(sites: Floats, outline: Floats) -> list[Floats]:
    """Compute the Voronoi cells of sites (m, 2), clipped to the convex polygon `outline` (K, 2).

    Each cell is a polygon of shape (k, 2). If sites coincide, the site with the lowest index gets the cell and the
    others get an empty polygon of shape (0, 2). Each cell starts as the outline and is clipped by the bisectors with
    the other sites, nearest first, until further bisectors cannot reach it (Sutherland & Hodgman 1974).
    """
    cells = []
    for i, site in enumerate(sites):
        cell = np.asarray(outline, dtype=np.float64)
        distances = np.linalg.norm(sites - site, axis=1)
        for j in np.argsort(distances, kind="stable"):
            if not len(cell) or distances[j] > 2 * np.linalg.norm(cell - site, axis=1).max():
                break  # this bisector and all later ones lie outside the cell
            if i != j:
                same = distances[j] == 0
                cell = cell[:0] if same and j < i else cell if same else _half(cell, site, sites[j])
        cells.append(cell)
    return cells


def _half(polygon: Floats, near: Floats, far: Floats) -> Floats:
    """Clip a convex polygon to the points that are at least as close to `near` as to `far`."""
    excess = (polygon - (near + far) / 2) @ (far - near)
    kept: list[Floats] = []
    for k in range(len(polygon)):
        a, b, at, bt = polygon[k - 1], polygon[k], excess[k - 1], excess[k]
        if (at > 0) != (bt > 0):
            kept.append(a + (b - a) * at / (at - bt))
        if bt <= 0:
            kept.append(b)
    return np.array(kept).reshape(-1, 2)
