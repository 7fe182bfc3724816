"""Reader of FGVC-Aircraft with variants as classes; variant names in the lists may contain spaces and slashes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dmlcore.data.dataset import DataError, Samples, reader
from dmlcore.data.files import lists
from dmlcore.data.files.image_table import ImageTable, PhotographSet, compact, samples
from dmlcore.data.files.lists import ListLine

# number of training classes, the first variants in variants.txt; there is no standard class-disjoint split
TRAIN_VARIANTS = 50

INFO = PhotographSet(
    name="aircraft",
    title="FGVC-Aircraft",
    sentence="Photographs of 100 variants of aircraft; the first 50 in their official list train, the last 50 test.",
    citation="S. Maji et al.: Fine-Grained Visual Classification of Aircraft. arXiv:1306.5151, 2013.",
    folder="fgvc-aircraft-2013b",
    other_folders=("FGVC-Aircraft", "aircraft"),
    markers=("data/images_variant_*.txt", "images_variant_*.txt"),
    images=("data/images", "images"),
    archives=("fgvc-aircraft-2013b.tar.gz", "aircraft-lists.tar.gz"),
    url="https://www.robots.ox.ac.uk/~vgg/data/fgvc-aircraft/archives/fgvc-aircraft-2013b.tar.gz",
)


@reader(INFO)
def read(folder: Path, image_size: int | None, seed: int) -> Samples:
    """Read the samples, with inputs (N, 3, S, S) uint8 decoded when indexed; raise DataError if an image is missing."""
    return samples(INFO, _data(folder) / "images", read_table(folder), image_size)


def read_table(folder: Path) -> ImageTable:
    """Join variants.txt with the lists of training, validation and test images, without needing the images.

    Paths are relative to data/images/. `official_train` includes the official validation images. Raises DataError
    naming file and line.
    """
    folder = _data(folder)
    variants = {row.text: number for number, row in enumerate(_variants(folder / "variants.txt"))}
    whole = folder / "images_variant_trainval.txt"
    halves = [folder / "images_variant_train.txt", folder / "images_variant_val.txt"]
    train = [row for path in ([whole] if whole.is_file() else halves) for row in _read_list(path, variants)]
    test = _read_list(folder / "images_variant_test.txt", variants)
    rows = train + test
    lists.require_distinct((f"image {image}", place) for image, _, place in rows)
    present, labels = compact([number for _, number, _ in rows])
    names = list(variants)
    return ImageTable(
        paths=tuple(f"{image}.jpg" for image, _, _ in rows),
        labels=labels,
        class_names=tuple(names[number] for number in present),
        train_classes=int((present < TRAIN_VARIANTS).sum()),
        official_train=np.arange(len(rows)) < len(train),
    )


def _data(folder: Path) -> Path:
    return folder / "data" if (folder / "data").is_dir() else folder


def _variants(path: Path) -> list[ListLine]:
    rows = lists.rows(path, INFO)
    lists.require_distinct((text, f"{path}:{line}") for line, text in rows)
    return rows


def _read_list(path: Path, variants: dict[str, int]) -> list[tuple[str, int, str]]:
    """Return (image number as a string, index of its variant, position "file:line") for each row of a list."""
    entries = []
    for place, image, name in lists.parse(path, lists.rows(path, INFO), r"(\d+) +(.+)", "'<image number> <variant>'"):
        if name not in variants:
            raise DataError(f"{place}: variant {name[:80]!r} is not in {path.with_name('variants.txt')}")
        entries.append((image, variants[name], place))
    return entries
