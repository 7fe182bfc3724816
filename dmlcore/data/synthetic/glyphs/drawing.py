"""Rendering of pen strokes as images: many characters per call, each the product of two small matrices."""

from __future__ import annotations

from functools import cache

import numpy as np

from dmlcore.typing import Bools, Floats, Pixels

POINTS = 5  # control points of a stroke, which is a cubic B-spline from the first to the last of them
PIECES = 72  # line segments per stroke: the longest are shorter than the width of the pen
DEVIATIONS = 2 * np.sqrt(2 * np.log(2))  # full width at half maximum of a Gaussian, in standard deviations
SLOPE = np.sqrt(np.log(2) / 2)  # slope of a Gaussian with standard deviation 1 at half its height


def drawn(points: Floats, has: Bools, pen: Floats, side: int) -> Pixels:
    """Render characters as images (n, side, side) uint8, 0 for paper and 255 for ink, with anti-aliased edges.

    The intensity is the integral of a two-dimensional Gaussian along the strokes, thresholded at half its height across
    a line. Such a Gaussian is a product of one Gaussian per axis, so the integral over all line segments is a matrix
    product. It is computed in float64, so that rounding differences between machines do not change the eight-bit
    result.

    Args:
        points: Control points (n, strokes, POINTS, 2) as x and y; the image is the unit square with y downwards.
        has: Mask (n, strokes) of existing strokes.
        pen: Width of the line in units of the image side, (n,).
        side: Side of the image in pixels.
    """
    trace = np.einsum("kp,nspd->nskd", _basis(), points)
    pieces = np.diff(trace, axis=2)
    lengths = (np.hypot(pieces[..., 0], pieces[..., 1]) * has[..., None]).reshape(len(points), -1, 1)
    middles = ((trace[:, :, 1:] + trace[:, :, :-1]) / 2).reshape(len(points), -1, 1, 2)
    deviation = (pen / DEVIATIONS)[:, None, None]
    pixels = (np.arange(side) + 0.5) / side
    across, down = (_gaussian(middles[..., d], pixels, deviation) for d in (0, 1))
    down *= lengths / (deviation * np.sqrt(2 * np.pi))
    height = np.swapaxes(down, 1, 2) @ across
    ramp = np.minimum(1.0, SLOPE / (deviation * side))  # decrease of the intensity over one pixel at the edge of a line
    ink: Pixels = np.rint(255 * np.clip((height - 0.5) / ramp + 0.5, 0, 1)).astype(np.uint8)
    return ink


def _gaussian(middles: Floats, pixels: Floats, deviation: Floats) -> Floats:
    """Return exp(-d^2 / (2 deviation^2)) for the distances d between middles (n, K, 1) and pixel centres (side,)."""
    half = np.sqrt(0.5) / deviation
    height: Floats = middles * half - pixels * half
    np.multiply(height, height, out=height)
    np.negative(height, out=height)
    np.exp(height, out=height)
    return height


@cache
def _basis() -> Floats:
    """Return the B-spline weights (PIECES + 1, POINTS) of the control points at evenly spaced parameters."""
    from scipy.interpolate import BSpline  # imported here because the import takes half a second

    degree = 3
    knots = np.concatenate([np.zeros(degree), np.linspace(0, 1, POINTS - degree + 1), np.ones(degree)])
    weights: Floats = BSpline.design_matrix(np.linspace(0, 1, PIECES + 1), knots, degree).toarray()
    return weights
