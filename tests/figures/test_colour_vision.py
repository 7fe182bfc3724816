"""Colours that carry a meaning remain distinguishable for viewers without one type of cones."""

from __future__ import annotations

import itertools

import numpy as np

from dmlcore.figures import charges, confusions, curves, differences, maps, published, strokes
from tests.members import in_one_case

# Linear RGB as seen by these viewers, at full severity. Source: Machado, Oliveira & Fernandes 2009, Table 1.
SIGHT = {
    "all cones": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
APART = 15.0  # CIELAB distance; 2.3 is just noticeable side by side, but marks of a figure are apart


def lab(colour: str, sight: str) -> np.ndarray:
    """Return CIELAB (D65) of "#rrggbb" as seen with this type of colour vision."""
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    x = TO_XYZ @ np.clip(SIGHT[sight] @ linear, 0, 1) / TO_XYZ.sum(1)
    f = np.where(x > (6 / 29) ** 3, np.cbrt(x), x / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def nearest(colours, sight: str) -> tuple[float, str, str]:
    """Return the smallest distance between two of the colours, and these colours."""
    return min(
        (float(np.linalg.norm(lab(a, sight) - lab(b, sight))), a, b) for a, b in itertools.combinations(colours, 2)
    )


ROLES = ("anchor", "positive", "negative", "force", "page")
ALL = {f"inks, dark: {dark}": [ink[role] for role in ROLES] for dark, ink in strokes.INK.items()} | {
    "map of few classes": maps.FEW,
    "right and wrong": (confusions.RIGHT, confusions.WRONG, confusions.MARKED),
    "flips": (differences.RIGHT, differences.WRONG),
    "behind and ahead": (published.BEHIND, published.AHEAD),
    "curves of few runs": curves.COLOURS[:6],
}


@in_one_case(sight=SIGHT, name=ALL)
def test_no_two_colours_of_a_palette_fall_together(name, sight):
    distance, one, other = nearest(ALL[name], sight)
    assert distance >= APART, f"{one} and {other} are {distance:.1f} apart for {sight}"


@in_one_case(sight=SIGHT, dark=[False, True])
def test_more_of_a_quantity_is_never_less_of_a_contrast_to_the_page(sight, dark):
    """A sequential colour map must be readable by lightness, the two ends of a diverging one by hue."""
    lightness = [lab(colour, sight)[0] for colour in strokes.RAMP[dark]]
    assert (np.diff(lightness) * (1 if dark else -1) > 5).all()
    low, middle, high = (strokes.SIGNED[dark][i] for i in (0, 2, 4))
    assert nearest((low, middle, high), sight)[0] >= 2 * APART


def test_where_colours_run_out_a_shape_or_a_dash_tells_apart():
    assert len({tuple(dash) for dash in curves.DASHES}) == len(curves.COLOURS)
    assert len(set(charges.MARKERS)) == len(charges.COLOURS[False]) == len(charges.COLOURS[True])
