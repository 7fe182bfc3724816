"""Toy data of Gurbuz 2022, Fig. 5.2: 10 x 10 pixels, each a mixture of red, blue and green background.

A feature is (red, green, blue), three shares that sum to 1. Maps hold red and blue as integers in units of 1/160, which
represents the figure exactly. The norm of a feature is at most 1, so `clip_to_unit_ball` does not change it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dmlcore.typing import Bools, Floats, Ints

SIDE = 10
STEPS = 160


def mixture(steps: Ints) -> Floats:
    """Return features (..., 3) = (red, green, blue) for red and blue (..., 2) in units of 1 / STEPS.

    Raises:
        ValueError: If a share is negative or red + blue exceeds STEPS.
    """
    red, blue = steps[..., 0], steps[..., 1]
    if (steps < 0).any() or (red + blue > STEPS).any():
        raise ValueError(f"steps of red and blue must be at least 0 and sum to at most {STEPS}")
    return np.stack([red, STEPS - red - blue, blue], -1) / STEPS


def informative(features: Floats) -> Bools:
    """Return the boolean mask (...,) of features (..., 3) that a pooling should select: less than half background."""
    is_informative: Bools = features[..., 1] < 0.5
    return is_informative


def figure() -> Ints:
    """Return the map of the published figure: a fading reddish block top left and a fading bluish one bottom right."""
    steps = ground()
    for k in range(25):
        row, column = divmod(k, 5)
        # With s = 0.3 k / 24 = k / 80, the reddish block has (red, green, blue) = (1 - s, s / 2, s / 2).
        steps[row, column] = STEPS - 2 * k, k
        steps[row + 5, column + 5] = k, STEPS - 2 * k
    return steps


def ground() -> Ints:
    """Return a map of pure background, in which all features are equal."""
    return np.zeros((SIDE, SIDE, 2), dtype=np.int64)


def cross() -> Ints:
    """Return a map of a red bar that crosses a blue bar, with equal shares of both at the crossing."""
    steps = ground()
    steps[4:6, 1:9, 0] = STEPS
    steps[1:9, 4:6] = 0, STEPS
    steps[4:6, 4:6] = STEPS // 2, STEPS // 2
    return steps


def small_object() -> Ints:
    """Return a map of nine different reddish pixels on pure background."""
    steps = ground()
    for k in range(9):
        steps[3 + k // 3, 5 + k % 3] = STEPS - 8 * k, 4 * k
    return steps


def noise() -> Ints:
    """Return a map of random mixtures with all shares >= 0, drawn with seed 0."""
    cuts = np.sort(np.random.default_rng(0).integers(0, STEPS + 1, (SIDE, SIDE, 2)), axis=-1)
    return np.stack([cuts[..., 0], cuts[..., 1] - cuts[..., 0]], -1)


MAPS: dict[str, Callable[[], Ints]] = {
    "figure": figure,
    "cross": cross,
    "object": small_object,
    "noise": noise,
    "equal": ground,
}
