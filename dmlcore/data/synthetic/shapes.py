"""Toy classes in three dimensions that no plane can separate: pairs of moons, and a chain of linked rings."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dmlcore.data.dataset import Description, Samples, reader
from dmlcore.typing import Floats

CLASSES, POINTS = 8, 200  # points per class
PAIRS = CLASSES // 2
# standard deviation of the noise in each direction; height of a pair of moons above the previous pair
MOON_NOISE, LIFT = 0.1, 0.5
# A ring radius of 1.2 maximises the distance between the centre lines of different rings: 0.61, or six standard
# deviations.
RING_NOISE, RING_RADIUS, CHAIN_RADIUS = 0.1, 1.2, 2.0

MOONS = Description(
    name="moons",
    title="Moons",
    sentence="Four pairs of interleaving moons, each rotated and raised above the previous one; eight classes in 3-D.",
    citation="scikit-learn's make_moons (F. Pedregosa et al., JMLR 12, 2011); the arrangement in space is ours.",
    kind="vectors",
    split="samples",
    validation="samples",
)
RINGS = Description(
    name="rings",
    title="Rings",
    sentence="A closed chain of eight rings in 3-D, each linked with its two neighbours; one class per ring.",
    citation="After C. Olah: Neural Networks, Manifolds, and Topology. colah.github.io, 2014; the chain is ours.",
    kind="vectors",
    split="samples",
    validation="samples",
)


@reader(MOONS)
def read_moons(folder: Path, image_size: int | None, seed: int) -> Samples:
    """Draw the moons for `seed`; inputs are (1600, 3) float32, and classes 2k and 2k + 1 are the pair at height k / 2.

    Pair k is scikit-learn's make_moons, centred and rotated by k * 45 degrees about the vertical axis, with Gaussian
    noise of standard deviation 0.1 in each direction.
    """
    from sklearn.datasets import make_moons  # imported here because the import is slow and only this data set needs it

    flat, side = make_moons((POINTS, POINTS), shuffle=False)
    flat = flat - (0.5, 0.25)  # moves the centre of the two arcs to the origin
    turns = np.arange(PAIRS) * np.pi / PAIRS
    # Transposed rotation matrices, because points are row vectors.
    rotations = np.array([[[np.cos(t), np.sin(t)], [-np.sin(t), np.cos(t)]] for t in turns])
    heights = np.broadcast_to((LIFT * np.arange(PAIRS))[:, None, None], (PAIRS, 2 * POINTS, 1))
    lines = np.concatenate([flat @ rotations, heights], axis=2)
    assert (np.diff(side) >= 0).all()
    names = [f"pair {pair}, {moon} moon" for pair in range(1, PAIRS + 1) for moon in ("outer", "inner")]
    return _samples(lines.reshape(-1, 3), MOON_NOISE, names, seed)


@reader(RINGS)
def read_rings(folder: Path, image_size: int | None, seed: int) -> Samples:
    """Draw the rings for `seed`; inputs are (1600, 3) float32, and class k is ring k.

    Gaussian noise of standard deviation 0.1 is added in each direction.
    """
    angles = np.arange(POINTS) * 2 * np.pi / POINTS
    lines = np.concatenate([ring(label, angles) for label in range(CLASSES)])
    return _samples(lines, RING_NOISE, [f"ring {number}" for number in range(1, CLASSES + 1)], seed)


def ring(label: int, angles: Floats) -> Floats:
    """Return points (n, 3) of the centre line of ring `label` at `angles` (n,) in radians.

    The centre of the ring is at label * 45 degrees on a circle of radius 2. The plane of the ring contains the tangent
    of that circle and is inclined by 45 degrees, alternately to either side, so that neighbouring rings are
    perpendicular and linked.
    """
    around = 2 * np.pi * label / CLASSES
    outward = np.array([np.cos(around), np.sin(around), 0.0])
    tangent = np.array([-np.sin(around), np.cos(around), 0.0])
    inclined = (outward + (-1) ** label * np.array([0.0, 0.0, 1.0])) / np.sqrt(2)
    circle = np.cos(angles)[:, None] * tangent + np.sin(angles)[:, None] * inclined
    points: Floats = CHAIN_RADIUS * outward + RING_RADIUS * circle
    return points


def _samples(lines: Floats, noise: float, names: list[str], seed: int) -> Samples:
    random = np.random.default_rng(seed)
    return Samples(
        inputs=(lines + noise * random.standard_normal(lines.shape)).astype(np.float32),
        labels=np.repeat(np.arange(CLASSES), POINTS),
        class_names=tuple(names),
        train_classes=CLASSES // 2,
    )
