"""Density contours of the points of a map: lines around the smallest regions that hold given shares of the points."""

from __future__ import annotations

from collections.abc import Sequence

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


def density_lines(
    places: NDArray[np.integer], shares: Sequence[float] = SHARES
) -> list[tuple[float, list[NDArray[np.uint16]]]]:
    """Return the contour lines around the densest region that holds each share of the points, outermost first.

    The density is a histogram of the points, smoothed by a Gaussian. The contour for a share is drawn at the density
    that this share of the points reaches or exceeds. With fewer than three points the list is empty.

    Args:
        places: Points (n, 2) with integer coordinates in 0..65535.
        shares: Shares of the points, each between 0 and 1, exclusive.

    Returns:
        Pairs of a share and its lines (m, 2), with coordinates in 0..65535.

    Raises:
        ValueError: If a share is not between 0 and 1.

    Reference:
        Hyndman 1996, Computing and Graphing Highest Density Regions.
    """
    if not all(0 < share < 1 for share in shares):
        raise ValueError(f"shares must lie between 0 and 1, got {tuple(shares)}")
    if len(places) < 3:
        return []
    points = places.astype(float) * ((NODES - 1) / STEPS)
    height = _density(points)
    column, row = np.rint(points).astype(int).T
    own = height[row, column]
    generator = contourpy.contour_generator(z=height, name="serial", line_type=contourpy.LineType.Separate)
    regions = []
    for share in sorted(shares, reverse=True):
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
