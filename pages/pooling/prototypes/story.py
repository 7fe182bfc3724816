"""Conclusion for the chosen image on the Prototypes page, and the link that opens it on the Transport page."""

from __future__ import annotations

import numpy as np

from dmlcore.pooling.analysis.colour_plane import ColourPlane, characteristic_prototypes
from dmlcore.pooling.analysis.prototype_shares import PrototypeReading
from dmlcore.pooling.analysis.red_blue import SIDE, informative, mixture
from dmlcore.typing import Ints
from pages.pooling.transport.state import TransportState, code

COUNTED = 4  # maximum number of prototypes passed on to the Transport page
# gate hardness for the Transport page; higher than in Fig. 5.2, because the features are closer together
EPSILON = 50.0
LEAST = 0.05  # minimum transported mass mu for the Transport page
# a pooled vector is close to its histogram if their distance is at most FINE times the distance between two images
FINE = 0.5


def verdict(reading: PrototypeReading, image: int, shared: float | None, averaged: bool) -> str:
    """Return sentences on the distance of a pooled vector from its histogram, and on the overlap of classes.

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
        sentences.append(f"Classes share {100 * shared:.0f} % of the histogram. Can a pooling drop the shared part?")
    return " ".join(sentences)


def onward(reading: PrototypeReading, image: int, labels: Ints, grid: tuple[int, int]) -> str:
    """Return the URL query string of the Transport page with the image as its map and prototypes of its class.

    The most characteristic prototype of the class defines the informative side of the feature plane; the rest is
    background. Up to COUNTED prototypes on that side are passed on. The transported mass mu is half the share of
    informative pixels.

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
    # the map of the Transport page has SIDE x SIDE pixels; each shows the nearest feature of the image
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
    """Return the root mean square distance between the pooled vectors of two different images."""
    return float(np.sqrt(2 * reading.pooled.var(0, ddof=1).sum())) if len(reading.pooled) > 1 else 0.0


def _codes(mixtures: Ints) -> tuple[int, ...]:
    return tuple(code(int(red), int(blue)) for red, blue in mixtures)
