"""Reader of CIFAR-100 in its official Python layout."""

from __future__ import annotations

from pathlib import Path

from dmlcore.data.dataset import Description, Samples, reader
from dmlcore.data.readers import cifar

CLASSES = 100

INFO = Description(
    name="cifar100",
    title="CIFAR-100",
    sentence="Photographs of 32 x 32 pixels in 100 classes; classes 0-49 train, 50-99 test.",
    citation="A. Krizhevsky: Learning Multiple Layers of Features from Tiny Images. University of Toronto, 2009.",
    kind="images",
    image_size=cifar.SIDE,
    needs_files=True,
    folder="cifar-100-python",
    markers=("train", "test", "meta"),
    archives=("cifar-100-python.tar.gz",),
    url="https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
)


@reader(INFO)
def read(folder: Path, image_size: int | None, seed: int) -> Samples:
    """Read the files `train` and `test`, complete or as subsets; inputs are (N, 3, 32, 32) uint8, labels fine ones."""
    names = cifar.read_names(folder / "meta", INFO, "fine_label_names", CLASSES)
    pixels, labels, counts = cifar.read([folder / "train", folder / "test"], INFO, {"fine_labels": CLASSES})
    return cifar.samples(pixels, labels["fine_labels"], names, counts[0], border=CLASSES // 2)
