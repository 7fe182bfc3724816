"""Reader of CIFAR-10 in its official Python layout: five training batches and a test batch, or a subset of them."""

from __future__ import annotations

from pathlib import Path

from dmlcore.data.dataset import Description, Samples, reader
from dmlcore.data.readers import cifar

CLASSES = 10
BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))

INFO = Description(
    name="cifar10",
    title="CIFAR-10",
    sentence="Photographs of 32 x 32 pixels in ten classes, with its official training and test images.",
    citation="A. Krizhevsky: Learning Multiple Layers of Features from Tiny Images. University of Toronto, 2009.",
    kind="images",
    split="samples",
    validation="samples",
    image_size=cifar.SIDE,
    needs_files=True,
    folder="cifar-10-batches-py",
    markers=("data_batch_1", "test_batch", "batches.meta"),
    archives=("cifar-10-python.tar.gz", "cifar-10-batches-py.tar.gz"),
    url="https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
)


@reader(INFO)
def read(folder: Path, image_size: int | None, seed: int) -> Samples:
    """Read the training batches, then the test batch; inputs are (N, 3, 32, 32) uint8.

    Classes 0 to 4 are the training classes of the class-disjoint split. Only the first training batch is required; a
    note names missing ones.
    """
    names = cifar.read_names(folder / "batches.meta", INFO, "label_names", CLASSES)
    absent = [name for name in BATCHES[1:] if not (folder / name).is_file()]
    training = [folder / name for name in BATCHES if name not in absent]
    pixels, labels, counts = cifar.read([*training, folder / "test_batch"], INFO, {"labels": CLASSES})
    note = f", without {', '.join(absent)}" if absent else ""
    return cifar.samples(pixels, labels["labels"], names, sum(counts[:-1]), border=CLASSES // 2, note=note)
