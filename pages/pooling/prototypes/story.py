"""Conclusion for one image on the Prototypes page, and the map and gate that it passes on to Transport."""

from __future__ import annotations

import numpy as np

from dmlcore.pooling.analysis.colour_plane import ColourPlane, characteristic_prototypes
from dmlcore.pooling.analysis.prototype_shares import PrototypeReading
from dmlcore.pooling.analysis.red_blue import SIDE, informative, mixture
from dmlcore.typing import Ints
from pages.pooling.transport.state import TransportState, code

COUNTED = 4  # largest number of prototypes of the gate passed on
EPSILON = 50.0  # hardness of that gate; its features are closer together than in Fig. 5.2
LEAST = 0.05  # smallest mass of that gate
# largest error of a histogram, as a share of the distance of two averages, at which the two averages remain distinct
FINE = 0.5


def verdict(reading: PrototypeReading, image: int, shared: float | None, averaged: bool) -> str:
    """Return sentences that compare the average of an image with its histogram and report what two classes share.

    Args:
        reading: The local features assigned to prototypes.
        image: Row of the image in `reading`.
        shared: Mean histogram intersection of two classes, 0 to 1; None if unknown.
        averaged: True if every feature has the same weight.
    """
    name = "average" if averaged else "pooled vector"
    title = "Average pooling" if averaged else "The pooled vector"
    error, apart = float(reading.error[image]), _between(reading)
    if error <= FINE * apart:
        first = f"{title} ≈ prototype histogram: their distance is {error:.3f}"
    else:
        first = f"These cells are too coarse: the distance of the {name} from its histogram is {error:.3f}"
    sentences = [f"{first}, against {apart:.3f} between two images."]
    if shared is not None:
        sentences.append(f"Classes share {100 * shared:.0f} % of it. Can a pooling drop the shared part?")
    return " ".join(sentences)


def onward(reading: PrototypeReading, image: int, labels: Ints, grid: tuple[int, int]) -> str:
    """Return the URL query of the next step: the features of the image as a map, with a gate for the cells of its
    class.

    The most characteristic cell of the class defines the informative side of the plane; the rest is background. The
    gate has up to COUNTED cells of that side and lets half of its mass pass.

    Args:
        reading: The local features assigned to prototypes.
        image: Row of the image in `reading`.
        labels: Classes of the images, shape (N,).
        grid: Rows and columns of the local features of an image.
    """
    tells = reading.prototypes[
        characteristic_prototypes(reading.histograms, labels, int(labels[image]), len(reading.prototypes))
    ]
    plane = ColourPlane.about(reading.features.reshape(-1, 2), tells[0])
    centres = plane.mixtures(tells)
    centres = np.concatenate([centres[:1], centres[1:][informative(mixture(centres[1:]))]])[:COUNTED]
    # The map has its own resolution: each pixel shows the feature at its position.
    rows, columns = (((np.arange(SIDE) + 0.5) * count / SIDE).astype(np.int64) for count in grid)
    features = reading.features[image].reshape(*grid, 2)[rows][:, columns]
    pixels = plane.mixtures(features.reshape(-1, 2))
    return TransportState(
        pixels=_codes(pixels),
        prototypes=_codes(centres),
        mu=round(max(float(informative(mixture(pixels)).mean()) / 2, LEAST), 2),
        epsilon=EPSILON,
    ).link()


def _between(reading: PrototypeReading) -> float:
    """Return the root mean square distance between the pooled vectors of two images."""
    return float(np.sqrt(2 * reading.pooled.var(0, ddof=1).sum())) if len(reading.pooled) > 1 else 0.0


def _codes(mixtures: Ints) -> tuple[int, ...]:
    return tuple(code(int(red), int(blue)) for red, blue in mixtures)
