"""Density contours of the points of a map: lines around the smallest regions that hold given shares of the points."""

from __future__ import annotations

import contourpy
import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from dmlcore.figures.maps import STEPS
from dmlcore.typing import Floats

SHARES = (0.9, 0.7, 0.5, 0.25)
NODES = 160  # grid nodes along either axis of the square
NARROWER = 0.3  # factor on the bandwidth of Scott's rule: the rule assumes a single cluster, but a map has many
FINEST = 1.2  # minimum smoothing width in grid nodes; smaller widths would draw lines around single points


def density_lines(places: NDArray[np.integer]) -> list[tuple[float, list[NDArray[np.uint16]]]]:
    """Return the contour lines around the densest regions that hold the SHARES of the points, outermost first.

    The density is a histogram of the points, smoothed by a Gaussian. The contour for a share is drawn at the density
    that this share of the points reaches or exceeds. With fewer than three points the list is empty.

    Args:
        places: Points (n, 2) with integer coordinates in 0..65535.

    Returns:
        Pairs of a share and its lines (m, 2), with coordinates in 0..65535.

    Reference:
        Hyndman 1996, Computing and Graphing Highest Density Regions.
    """
    if len(places) < 3:
        return []
    points = places.astype(float) * ((NODES - 1) / STEPS)
    height = _density(points)
    column, row = np.rint(points).astype(int).T
    own = height[row, column]
    generator = contourpy.contour_generator(z=height, name="serial", line_type=contourpy.LineType.Separate)
    regions = []
    for share in SHARES:
        lines = generator.lines(float(np.quantile(own, 1 - share)))
        regions.append((share, [np.rint(np.asarray(line) * (STEPS / (NODES - 1))).astype("<u2") for line in lines]))
    return regions


def _density(points: Floats) -> Floats:
    """Return the smoothed density of points (n, 2) in grid coordinates, shape (NODES, NODES); rows correspond to y."""
    edges = np.arange(NODES + 1) - 0.5
    counts = np.histogram2d(points[:, 1], points[:, 0], bins=(edges, edges))[0]
    width = NARROWER * len(points) ** (-1 / 6) * float(np.sqrt(points.var(axis=0).mean()))
    smoothed: Floats = gaussian_filter(counts, max(FINEST, width), mode="constant")
    return smoothed
