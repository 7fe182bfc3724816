"""Voronoi cells clipped to a convex polygon."""

from __future__ import annotations

import numpy as np

from dmlcore.geometry.hulls import clip
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
                if same:
                    cell = cell[:0] if j < i else cell
                else:  # points at least as close to the site as to the other one
                    nearer = ((site + sites[j]) / 2 - cell) @ (sites[j] - site)
                    cell = np.array(clip(cell.tolist(), nearer.tolist())).reshape(-1, 2)
        cells.append(cell)
    return cells
