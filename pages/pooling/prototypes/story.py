"""What follows from an image and its average, and what it hands to the next step of the story: a map with a gate."""

from __future__ import annotations

import numpy as np

from dmlcore.pooling.analysis.colour_plane import ColourPlane, telling
from dmlcore.pooling.analysis.prototype_shares import PrototypeReading
from dmlcore.pooling.analysis.red_blue import SIDE, informative, mixture
from dmlcore.typing import Ints
from pages.pooling.transport.state import TransportState, code

COUNTED = 4  # prototypes, at most, that the gate of the next step lets pass
EPSILON = 50.0  # of that gate: features lie closer here than in the figure
LEAST = 0.05  # of its mass
FINE = 0.5  # of the distance of two averages: an error below it leaves them told apart


def verdict(reading: PrototypeReading, image: int, shared: float | None, averaged: bool) -> str:
    """Whether the histogram stands for the average of an image, and how much of it two classes have in common.

    shared: the mean histogram intersection of two classes; averaged: every feature weighs the same.
    """
    name = "average" if averaged else "pooled vector"
    title = "Average pooling" if averaged else "The pooled vector"
    error, apart = float(reading.error[image]), _between(reading)
    if error <= FINE * apart:
        first = f"{title} ≈ prototype histogram: the two lie {error:.3f} apart"
    else:
        first = f"These cells are too coarse: the {name} and its histogram lie {error:.3f} apart"
    sentences = [f"{first}, those of two images {apart:.3f}."]
    if shared is not None:
        sentences.append(f"Classes share {100 * shared:.0f} % of it. Can a pooling drop the shared part?")
    return " ".join(sentences)


def onward(reading: PrototypeReading, image: int, labels: Ints, grid: tuple[int, int]) -> str:
    """The link of the next step: the features of the image as a map, and a gate for the cells that tell its class.

    Background is what lies away from the cell that tells it most, and the gate has up to COUNTED cells of that side.
    Half of what lies there is to pass. labels (N,); grid: rows and columns of its features.
    """
    tells = reading.prototypes[telling(reading.histograms, labels, int(labels[image]), len(reading.prototypes))]
    plane = ColourPlane.about(reading.features.reshape(-1, 2), tells[0])
    centres = plane.mixtures(tells)
    centres = np.concatenate([centres[:1], centres[1:][informative(mixture(centres[1:]))]])[:COUNTED]
    # The map has its own number of pixels: each shows the feature that lies there.
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
    """The root mean square distance of the pooled vectors of two images."""
    return float(np.sqrt(2 * reading.pooled.var(0, ddof=1).sum())) if len(reading.pooled) > 1 else 0.0


def _codes(mixtures: Ints) -> tuple[int, ...]:
    return tuple(code(int(red), int(blue)) for red, blue in mixtures)
