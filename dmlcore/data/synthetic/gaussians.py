"""Toy data of Karaman 2021: Gaussian classes in three dimensions, as described in section 9 of the science note."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dmlcore.data.dataset import Description, Samples, reader

CLASSES, POINTS, VARIANCE = 32, 200, 0.02

INFO = Description(
    name="toy",
    title="Toy Gaussians",
    sentence="32 overlapping Gaussian classes of 200 points in three dimensions; 12 / 4 / 16 classes.",
    citation="Toy data of the 2021 thesis, class means uniform in the unit cube, covariance 0.02 I.",
    kind="vectors",
)


@reader(INFO)
def read(folder: Path, image_size: int | None, seed: int) -> Samples:
    """Draw the toy data for `seed`; inputs are (6400, 3) float32, sorted by class; the first 16 of 32 classes train."""
    random = np.random.default_rng(seed)
    means = random.uniform(0.0, 1.0, size=(CLASSES, 1, 3))
    points = means + np.sqrt(VARIANCE) * random.standard_normal((CLASSES, POINTS, 3))
    return Samples(
        inputs=points.reshape(-1, 3).astype(np.float32),
        labels=np.repeat(np.arange(CLASSES), POINTS),
        class_names=tuple(f"Gaussian {number:02d}" for number in range(1, CLASSES + 1)),
        train_classes=CLASSES // 2,
    )
