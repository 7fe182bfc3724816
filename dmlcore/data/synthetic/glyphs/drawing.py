"""Rendering of pen strokes as images: many characters per call, each computed as a product of two small matrices."""

from __future__ import annotations

from functools import cache

import numpy as np

from dmlcore.typing import Bools, Floats, Pixels

POINTS = 5  # number of control points of a stroke, which is a cubic B-spline from the first to the last control point
PIECES = 72  # number of line segments per stroke; even the longest segments are shorter than the width of the pen
DEVIATIONS = 2 * np.sqrt(2 * np.log(2))  # full width at half maximum of a Gaussian, in standard deviations
SLOPE = np.sqrt(np.log(2) / 2)  # slope of a Gaussian with standard deviation 1 at half its height


def drawn(points: Floats, has: Bools, pen: Floats, side: int) -> Pixels:
    """Render characters as images (n, side, side) uint8, 0 for paper and 255 for ink, with anti-aliased edges.

    The intensity at a pixel is the integral of a two-dimensional Gaussian along the strokes; values above half the
    maximum are ink. Such a Gaussian is the product of one Gaussian per axis, so the sum over all line segments is a
    matrix product. It is computed in float64, so that rounding differences between machines do not change the eight-bit
    result.

    Args:
        points: Control points (n, strokes, POINTS, 2) as x and y; the image is the unit square with y downwards.
        has: Mask of the strokes that exist, shape (n, strokes).
        pen: Line width of each character as a fraction of the image side, shape (n,).
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
    # decrease of the intensity across one pixel at the edge of a line, at most 1
    ramp = np.minimum(1.0, SLOPE / (deviation * side))
    ink: Pixels = np.rint(255 * np.clip((height - 0.5) / ramp + 0.5, 0, 1)).astype(np.uint8)
    return ink


def _gaussian(middles: Floats, pixels: Floats, deviation: Floats) -> Floats:
    """Return exp(-d^2 / (2 deviation^2)); d are distances between middles (n, K, 1) and pixel centres (side,)."""
    half = np.sqrt(0.5) / deviation
    height: Floats = middles * half - pixels * half
    np.multiply(height, height, out=height)
    np.negative(height, out=height)
    np.exp(height, out=height)
    return height


@cache
def _basis() -> Floats:
    """Return weights (PIECES + 1, POINTS) that map the control points of a stroke to points along its B-spline."""
    from scipy.interpolate import BSpline  # imported here because the import takes half a second

    degree = 3
    knots = np.concatenate([np.zeros(degree), np.linspace(0, 1, POINTS - degree + 1), np.ones(degree)])
    weights: Floats = BSpline.design_matrix(np.linspace(0, 1, PIECES + 1), knots, degree).toarray()
    return weights
