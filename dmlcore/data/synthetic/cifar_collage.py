"""Cifar-Collage: a CIFAR-100 image next to three images of background classes, as in section 8 of the science note."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dmlcore.data.dataset import DataError, Samples, reader
from dmlcore.data.readers import cifar, cifar100
from dmlcore.data.synthetic import collage
from dmlcore.data.synthetic.collage import CollageLayout, TileImages
from dmlcore.typing import Array, Ints, Pixels

SUPER_CLASSES, SUB_CLASSES = 20, 5  # number of super-classes; number of sub-classes per super-class
BACKGROUNDS = ("flowers", "large_man-made_outdoor_things", "large_natural_outdoor_scenes", "trees")
# split -> positions of its sub-classes in the alphabetical order within each super-class
RANKS = {"train": (0, 1), "validation": (2,), "test": (3, 4)}

INFO = replace(
    cifar100.INFO,
    name="collage",
    title="Cifar-Collage",
    sentence="CIFAR-100 images of 16 super-classes, each among three shared backgrounds; tested on unseen sub-classes.",
    citation="Cifar-Collage, the pooling study of the thesis; images of A. Krizhevsky: CIFAR-100. Toronto, 2009.",
    split="own",
    validation="own",
    image_size=2 * cifar.SIDE,
    grid=2,
)
DISTILLED = replace(
    INFO,
    name="collage_distilled",
    title="Cifar-Collage, distilled",
    sentence="The foreground images of Cifar-Collage alone, in the same order: the upper bound for a pooling.",
    image_size=cifar.SIDE,
    grid=0,
)
PRETRAINING = replace(
    cifar100.INFO,
    name="collage_pretraining",
    title="CIFAR-100 for Cifar-Collage",
    sentence="The 40 CIFAR-100 classes that Cifar-Collage trains on, so that pretraining sees no test class.",
    split="samples",
    validation="samples",
)


@dataclass(frozen=True, eq=False)
class CifarImages:
    """All images of CIFAR-100, in the order of the official training file and then the test file.

    Attributes:
        pixels: Images, shape (N, 3, 32, 32).
        fine: Fine labels in 0..99, shape (N,).
        training_rows: Number of images in the training file.
        sub_classes: Fine labels of the five sub-classes of each super-class, ascending, shape (20, 5).
        fine_names: Names of the fine classes.
        super_names: Names of the super-classes.
    """

    pixels: Pixels
    fine: Ints
    training_rows: int
    sub_classes: Ints
    fine_names: tuple[str, ...]
    super_names: tuple[str, ...]

    @property
    def foregrounds(self) -> list[int]:
        return [number for number, name in enumerate(self.super_names) if name not in BACKGROUNDS]

    @property
    def backgrounds(self) -> list[int]:
        return [number for number, name in enumerate(self.super_names) if name in BACKGROUNDS]

    def rows(self, super_classes: list[int], split: str) -> Ints:
        """Return the indices of the images of `super_classes` in split `split`, grouped by super-class."""
        sub_classes = (self.sub_classes[number, list(RANKS[split])] for number in super_classes)
        return np.concatenate([np.flatnonzero(np.isin(self.fine, some)) for some in sub_classes])


@reader(INFO)
def read(folder: Path, image_size: int | None, seed: int) -> Samples:
    """Create the collages for `seed`; inputs are (N, 3, 64, 64) uint8, labels 16 super-classes, splits predefined.

    Facts: `tiles` (N, 4), indices into the CIFAR-100 images, training file first; `foreground` (N,), position 0 to 3 of
    the tile that shows the class; `shows` (N, 4), mask of that tile; `fine` (N,), fine label of that tile in 0..99.
    """
    source = read_source(folder)
    layout = lay_out(source, seed)
    inputs = collage.collages(source.pixels, layout, _images(source)["train"], source.fine)
    facts = {"tiles": layout.tiles, "foreground": layout.foreground, "shows": layout.shows}
    return _samples(source, layout, inputs, facts)


@reader(DISTILLED)
def read_distilled(folder: Path, image_size: int | None, seed: int) -> Samples:
    """Return the foreground images of the collages from `read`, in the same order; inputs are (N, 3, 32, 32) uint8.

    Facts: `tiles` (N, 1), indices into the CIFAR-100 images; `fine` (N,), fine labels.
    """
    source = read_source(folder)
    layout = lay_out(source, seed)
    rows = layout.front
    return _samples(source, layout, source.pixels[rows], {"tiles": rows[:, None]})


@reader(PRETRAINING)
def read_pretraining(folder: Path, image_size: int | None, seed: int) -> Samples:
    """Return all images of the 40 training sub-classes, including backgrounds; labels are the fine labels.

    Inputs are (N, 3, 32, 32) uint8.

    Facts: `tiles` (N, 1), indices into the CIFAR-100 images; `fine` (N,), fine labels.
    """
    source = read_source(folder)
    rows = np.sort(source.rows(list(range(SUPER_CLASSES)), "train"))
    known = np.unique(source.fine[rows])
    training_rows = int((rows < source.training_rows).sum())
    samples = cifar.samples(
        source.pixels[rows], source.fine[rows], source.fine_names, training_rows, border=int(known[len(known) // 2])
    )
    return replace(samples, notes=_subset(source), facts={"tiles": rows[:, None], "fine": source.fine[rows]})


def read_source(folder: Path) -> CifarImages:
    """Read CIFAR-100 with its super-classes; raise DataError unless each of them has images of 5 sub-classes."""
    fields = {"fine_labels": cifar100.CLASSES, "coarse_labels": SUPER_CLASSES}
    fine_names, super_names = (
        cifar.read_names(folder / "meta", INFO, f"{field.removesuffix('s')}_names", count)
        for field, count in fields.items()
    )
    pixels, labels, counts = cifar.read([folder / "train", folder / "test"], INFO, fields)
    fine = labels["fine_labels"]
    if missing := sorted(set(BACKGROUNDS) - set(super_names)):
        raise DataError(f"{folder / 'meta'}: there is no super-class {missing[0]}; restore the official file")
    lists = [np.unique(fine[labels["coarse_labels"] == number]) for number in range(SUPER_CLASSES)]
    for name, members in zip(super_names, lists, strict=True):
        if len(members) != SUB_CLASSES:
            raise DataError(
                f"{folder}: super-class {name} has {len(members)} sub-classes with images instead of {SUB_CLASSES}; "
                "a collage needs images of all 100: complete the data set"
            )
    if len(np.unique(np.concatenate(lists))) != cifar100.CLASSES:
        raise DataError(f"{folder}: a sub-class is in two super-classes; restore the official files")
    return CifarImages(pixels, fine, counts[0], np.array(lists), fine_names, super_names)


def lay_out(source: CifarImages, seed: int) -> CollageLayout:
    """Create the layout of one collage per foreground image, each with three background images from the same split."""
    return collage.lay_out(_images(source), source.fine, seed)


def _images(source: CifarImages) -> dict[str, TileImages]:
    return {
        split: TileImages(source.rows(source.foregrounds, split), source.rows(source.backgrounds, split))
        for split in RANKS
    }


def _samples(source: CifarImages, layout: CollageLayout, inputs: Any, facts: dict[str, Array]) -> Samples:
    fine = source.fine[layout.front]
    label_of = np.zeros(cifar100.CLASSES, dtype=np.int64)
    for label, number in enumerate(source.foregrounds):
        label_of[source.sub_classes[number]] = label
    return Samples(
        inputs=inputs,
        labels=label_of[fine],
        class_names=tuple(source.super_names[number] for number in source.foregrounds),
        train_classes=len(source.foregrounds),
        splits=layout.splits,
        image=partial(cifar.image, inputs),
        notes=_subset(source),
        facts=facts | {"fine": fine},
    )


def _subset(source: CifarImages) -> tuple[str, ...]:
    if len(source.fine) == cifar.IMAGES:
        return ()
    return (f"built from a subset: {len(source.fine):,} of the {cifar.IMAGES:,} images of CIFAR-100",)
