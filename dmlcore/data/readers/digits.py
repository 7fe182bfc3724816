"""Reader of the handwritten digits in scikit-learn: 1797 samples of 8 x 8 grey pixels, ten classes."""

from __future__ import annotations

from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from dmlcore.data.dataset import Description, Samples, reader
from dmlcore.typing import Bytes, Pixels, Singles

INFO = Description(
    name="digits",
    title="Digits",
    sentence="1,797 handwritten digits of 8 x 8 pixels, bundled with scikit-learn; trains in seconds.",
    citation="E. Alpaydin, C. Kaynak: Optical Recognition of Handwritten Digits. UCI repository, 1998.",
    kind="vectors",
    split="samples",
    validation="samples",
)


@reader(INFO)
def read(folder: Path, image_size: int | None, seed: int) -> Samples:
    """Read the digits; inputs are (1797, 64) float32 in 0..1, and digits 0 to 4 train in the class-disjoint split."""
    table = _table()
    inputs, labels = (table[:, :64] / 16.0).astype(np.float32), table[:, 64].astype(np.int64)
    return Samples(
        inputs=inputs,
        labels=labels,
        class_names=tuple("0123456789"),
        train_classes=5,
        image=partial(_image, inputs),
    )


@cache
def _table() -> Bytes:
    """Return the table (1797, 65) uint8: 64 columns of pixels with values 0 to 16, and a column of labels.

    The table is cached, because reading it takes as long as several training steps.
    """
    return np.loadtxt(_bundled(), delimiter=",", dtype=np.uint8)


def _bundled() -> Path:
    """Return the path of the file that `sklearn.datasets.load_digits` reads, without importing scikit-learn (1.6 s)."""
    module = find_spec("sklearn")
    assert module
    assert module.origin
    return Path(module.origin).parent / "datasets" / "data" / "digits.csv.gz"


def _image(inputs: Singles, index: int) -> Pixels:
    grey = np.rint(inputs[index].reshape(8, 8) * 255).astype(np.uint8)
    return np.repeat(grey[:, :, None], 3, axis=2)
