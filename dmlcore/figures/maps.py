"""A map of embeddings: points of a projection by class, as what the canvas of the map page draws."""

from __future__ import annotations

import base64
import colorsys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Okabe and Ito's colours, those too pale for white paper darkened to a contrast of 3, then a grey.
FEW = ("#0072B2", "#D55E00", "#009E73", "#C45C95", "#2F97D3", "#B87F00", "#8C6BB1", "#7F7F7F")
LIGHTNESS = (0.28, 0.13, 0.20)  # relative luminance: contrast 3 and more on white and on #12161C
MARGIN = 0.03  # of the square, free at each side
_TURN = 0.381966  # the golden angle as a share of the hue circle: classes next to each other differ most


def palette(classes: int) -> list[str]:
    """A colour "#rrggbb" for each class: Okabe-Ito for few, otherwise hues of three brightnesses."""
    if classes <= len(FEW):
        return list(FEW[:classes])
    return [_colour(number * _TURN % 1.0, LIGHTNESS[number % len(LIGHTNESS)]) for number in range(classes)]


def luminance(colour: str) -> float:
    """Relative luminance of "#rrggbb" in 0..1 (WCAG 2.2)."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def class_map(
    points: NDArray[np.floating[Any]],
    labels: NDArray[np.int64],
    indices: NDArray[np.int64],
    name: Callable[[int], str],
) -> dict[str, Any]:
    """Plain data of a map: points (n, 2), labels (n,), indices (n,) of samples -> counts, classes and packed points.

    "points" is base64 of little-endian uint16 (n, 3): x and y as shares of the square in 1/65535, y upwards, and the
    place in "classes"; "indices" of int32 (n,). Each class has label, name, colour, count and the place x, y of its
    most central point, where its name is written. Raises ValueError if the shapes disagree or a point is not finite.
    """
    if points.shape != (len(labels), 2) or indices.shape != labels.shape or len(labels) == 0:
        raise ValueError(
            f"points {points.shape}, labels {labels.shape} and indices {indices.shape} do not fit together"
        )
    if not np.isfinite(points).all():
        raise ValueError("points must be finite, but hold NaN or Inf")
    present, place = np.unique(labels, return_inverse=True)
    square = in_square(points)
    centres = [_most_central(square[place == number]) for number in range(len(present))]
    packed = np.column_stack([np.rint(square * 65535), place]).astype("<u2")
    return {
        "count": len(labels),
        "points": base64.b64encode(packed.tobytes()).decode(),
        "indices": base64.b64encode(indices.astype("<i4").tobytes()).decode(),
        "classes": [
            {"label": int(label), "name": name(int(label)), "colour": colour, "count": int(count), "x": x, "y": y}
            for label, colour, count, (x, y) in zip(
                present, palette(len(present)), np.bincount(place), centres, strict=True
            )
        ],
    }


def in_square(points: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Points (n, 2) shifted and scaled alike on both axes into the unit square, centred, with a margin."""
    low, high = points.min(axis=0).astype(float), points.max(axis=0).astype(float)
    width = float((high - low).max()) or 1.0
    shares: NDArray[np.float64] = 0.5 + (points - (low + high) / 2) / width * (1 - 2 * MARGIN)
    return shares


def _most_central(points: NDArray[np.float64]) -> tuple[float, float]:
    """The point nearest to the median of a class: unlike the median itself, it lies among its points."""
    nearest = np.linalg.norm(points - np.median(points, axis=0), axis=1).argmin()
    x, y = points[nearest].round(4)
    return float(x), float(y)


def _colour(hue: float, target: float) -> str:
    """The colour of this hue whose relative luminance is `target`."""
    low, high = 0.0, 1.0
    for _ in range(12):
        lightness = (low + high) / 2
        red, green, blue = (round(255 * c) for c in colorsys.hls_to_rgb(hue, lightness, 0.72))
        colour = f"#{red:02X}{green:02X}{blue:02X}"
        low, high = (lightness, high) if luminance(colour) < target else (low, lightness)
    return colour
