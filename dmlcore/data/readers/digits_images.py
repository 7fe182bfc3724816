"""Reader of scikit-learn's handwritten digits as images, to try image networks and poolings without a download."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from dmlcore.data.dataset import Description, Samples, reader
from dmlcore.data.readers import cifar, digits

ENLARGED = 4  # side in pixels of the square to which each of the 8 x 8 pixels of a digit is enlarged

INFO = Description(
    name="digits_pictures",
    title="Digits as images",
    sentence="The 1,797 handwritten digits, each pixel enlarged to 4 x 4: grey images of 32 x 32.",
    citation=digits.INFO.citation,
    kind="images",
    split="samples",
    validation="samples",
    image_size=8 * ENLARGED,
)


@reader(INFO)
def read(folder: Path, image_size: int | None, seed: int) -> Samples:
    """Read the digits; inputs are (1797, 3, 32, 32) uint8, and digits 0 to 4 train in the class-disjoint split."""
    vectors = digits.read(folder, image_size, seed)
    grey = np.rint(vectors.inputs[:].reshape(-1, 1, 8, 8) * 255).astype(np.uint8)
    large = grey.repeat(ENLARGED, axis=2).repeat(ENLARGED, axis=3)
    inputs = large.repeat(3, axis=1)
    return Samples(
        inputs=inputs,
        labels=vectors.labels,
        class_names=vectors.class_names,
        train_classes=vectors.train_classes,
        image=partial(cifar.image, inputs),
    )
