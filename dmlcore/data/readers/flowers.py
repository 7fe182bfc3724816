"""Reader of Oxford Flowers-102: labels and image-wise split in two .mat files, images numbered from 1."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dmlcore.data.dataset import DataError, Samples, reader
from dmlcore.data.files import matlab
from dmlcore.data.files.image_table import ImageTable, PhotographSet, compact, samples
from dmlcore.typing import Bools

CLASSES = 102
# labels 1 to 51 are training classes, 52 to 102 test classes; there is no standard class-disjoint split
TRAIN_CLASSES = 51
SETS = ("trnid", "valid", "tstid")

INFO = PhotographSet(
    name="flowers",
    title="Oxford Flowers-102",
    sentence="Photographs of 102 flowers that grow in Britain; labels 1 to 51 train, 52 to 102 test.",
    citation="M.-E. Nilsback and A. Zisserman: Automated Flower Classification over a Large Number of Classes. "
    "ICVGIP 2008.",
    folder="flowers-102",
    other_folders=("flowers102", "102flowers", "oxford-102-flowers"),
    markers=("imagelabels.mat", "setid.mat"),
    images=("jpg",),
    archives=("102flowers.tgz", "flowers102-labels.tar.gz"),
    companions={"102flowers.tgz": ("imagelabels.mat", "setid.mat")},
    url="https://www.robots.ox.ac.uk/~vgg/data/flowers/102/102flowers.tgz",
)

# Class names in the order of the labels. The .mat files contain no names; this is the list that torchvision uses.
NAMES = (
    "pink primrose", "hard-leaved pocket orchid", "canterbury bells", "sweet pea", "english marigold", "tiger lily",
    "moon orchid", "bird of paradise", "monkshood", "globe thistle", "snapdragon", "colt's foot", "king protea",
    "spear thistle", "yellow iris", "globe-flower", "purple coneflower", "peruvian lily", "balloon flower",
    "giant white arum lily", "fire lily", "pincushion flower", "fritillary", "red ginger", "grape hyacinth",
    "corn poppy", "prince of wales feathers", "stemless gentian", "artichoke", "sweet william", "carnation",
    "garden phlox", "love in the mist", "mexican aster", "alpine sea holly", "ruby-lipped cattleya", "cape flower",
    "great masterwort", "siam tulip", "lenten rose", "barbeton daisy", "daffodil", "sword lily", "poinsettia",
    "bolero deep blue", "wallflower", "marigold", "buttercup", "oxeye daisy", "common dandelion", "petunia",
    "wild pansy", "primula", "sunflower", "pelargonium", "bishop of llandaff", "gaura", "geranium", "orange dahlia",
    "pink-yellow dahlia", "cautleya spicata", "japanese anemone", "black-eyed susan", "silverbush", "californian poppy",
    "osteospermum", "spring crocus", "bearded iris", "windflower", "tree poppy", "gazania", "azalea", "water lily",
    "rose", "thorn apple", "morning glory", "passion flower", "lotus", "toad lily", "anthurium", "frangipani",
    "clematis", "hibiscus", "columbine", "desert-rose", "tree mallow", "magnolia", "cyclamen", "watercress",
    "canna lily", "hippeastrum", "bee balm", "ball moss", "foxglove", "bougainvillea", "camellia", "mallow",
    "mexican petunia", "bromelia", "blanket flower", "trumpet creeper", "blackberry lily",
)  # fmt: skip


@reader(INFO)
def read(folder: Path, image_size: int | None, seed: int) -> Samples:
    """Read the samples, with inputs (N, 3, S, S) uint8 decoded when indexed; raise DataError if an image is missing."""
    return samples(INFO, folder / "jpg", read_table(folder), image_size)


def read_table(folder: Path) -> ImageTable:
    """Join imagelabels.mat and setid.mat, without needing the images.

    Paths are relative to jpg/. `official_train` combines the official training and validation sets (trnid and valid).
    Raises DataError naming file, variable and entry.
    """
    numbers = matlab.read(folder / "imagelabels.mat", INFO).integers("labels")
    if wrong := np.flatnonzero((numbers < 1) | (numbers > CLASSES)).tolist():
        row = wrong[0]
        raise DataError(
            f"{folder / 'imagelabels.mat'}: labels, entry {row + 1}: expected 1 to {CLASSES}, got {numbers[row]}"
        )
    present, labels = compact(numbers.tolist())
    return ImageTable(
        paths=tuple(f"image_{number:05d}.jpg" for number in range(1, len(numbers) + 1)),
        labels=labels,
        class_names=tuple(NAMES[number - 1] for number in present),
        train_classes=int((present <= TRAIN_CLASSES).sum()),
        official_train=_official_train(folder / "setid.mat", len(numbers)),
    )


def _official_train(path: Path, images: int) -> Bools:
    sets = matlab.read(path, INFO)
    owner = np.full(images, "", dtype="U5")
    for name in SETS:
        for row, number in enumerate(sets.integers(name).tolist(), start=1):
            if not 1 <= number <= images:
                raise DataError(f"{path}: {name}, entry {row}: expected an image from 1 to {images}, got {number}")
            if owner[number - 1]:
                raise DataError(f"{path}: {name}, entry {row}: image {number} is already in {owner[number - 1]}")
            owner[number - 1] = name
    if without := np.flatnonzero(owner == "").tolist():
        raise DataError(f"{path}: image {without[0] + 1} is not in any of {', '.join(SETS)}; restore the file")
    is_train: Bools = owner != "tstid"
    return is_train
