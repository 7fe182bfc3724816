"""Rendering of strokes as ink: many characters per call, each a product of two small matrices."""

from __future__ import annotations

from functools import cache

import numpy as np

from dmlcore.typing import Bools, Floats, Pixels

POINTS = 5  # control points of a stroke, a cubic B-spline from the first to the last of them
PIECES = 72  # line segments per stroke: the longest are shorter than the width of the pen
DEVIATIONS = 2 * np.sqrt(2 * np.log(2))  # width of a Gaussian at half its height
SLOPE = np.sqrt(np.log(2) / 2)  # of a Gaussian of deviation 1 at half its height


def drawn(points: Floats, has: Bools, pen: Floats, side: int) -> Pixels:
    """Draw characters as ink (n, side, side), 0 paper and 255 ink, with edges one pixel soft.

    The ink is the integral of a Gaussian along the strokes, cut at half its height across a line. A Gaussian of two
    variables is a product of one per axis, so the integral over the segments is a product of matrices. It is computed
    in float64, so that rounding differences between machines do not change the eight-bit result.

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
    ramp = np.minimum(1.0, SLOPE / (deviation * side))  # decrease of a line's height over one pixel of its edge
    ink: Pixels = np.rint(255 * np.clip((height - 0.5) / ramp + 0.5, 0, 1)).astype(np.uint8)
    return ink


def _gaussian(middles: Floats, pixels: Floats, deviation: Floats) -> Floats:
    """Return the Gaussian of the distances of middles (n, K, 1) and pixels (side,), computed in place."""
    half = np.sqrt(0.5) / deviation
    height: Floats = middles * half - pixels * half
    np.multiply(height, height, out=height)
    np.negative(height, out=height)
    np.exp(height, out=height)
    return height


@cache
def _basis() -> Floats:
    """Return the weights (PIECES + 1, POINTS) of the control points at even steps of the parameter."""
    from scipy.interpolate import BSpline  # imported here because it takes half a second, which each command would pay

    degree = 3
    knots = np.concatenate([np.zeros(degree), np.linspace(0, 1, POINTS - degree + 1), np.ones(degree)])
    weights: Floats = BSpline.design_matrix(np.linspace(0, 1, PIECES + 1), knots, degree).toarray()
    return weights
