"""Drawn birds: 72 species that differ in body parts, proportions and colours; a fine-grained, generated data set."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dmlcore.data.dataset import Description, Samples, reader
from dmlcore.data.files.image_store import short_side
from dmlcore.data.synthetic.birds.drawing import draw
from dmlcore.data.synthetic.birds.species import FAMILIES, MARKS, guide
from dmlcore.data.synthetic.drawings import Drawings
from dmlcore.typing import Ints, Pixels

PER_CLASS = 40
IMAGE_SIZE, DISPLAYED = 64, 160  # pixels per side

INFO = Description(
    name="birds",
    title="Drawn birds",
    sentence="Drawings of 72 bird species in varying poses, light and clutter; the first 36 train, the other 36 test.",
    citation="Drawn by DML Lab.",
    kind="images",
    image_size=IMAGE_SIZE,
    centre_cut=True,
    resizes=True,
)


class DrawnBirds:
    """Images of birds (N, 3, size, size) uint8, drawn on first access; each depends only on (seed, index, size).

    Like stored photographs, they are centre crops of images with a side of 256/227 times `size`; `uncut` returns the
    uncropped images. Indexing follows numpy along the first axis and returns a copy.
    """

    dtype = np.dtype(np.uint8)

    def __init__(self, labels: Ints, seed: int, size: int) -> None:
        side = short_side(size)

        def draw(rows: Ints) -> Pixels:
            return np.stack([image(labels, seed, side, row) for row in rows.tolist()])

        def drawn_from(index: int) -> bytes:
            return f"{seed} {index} {labels[index]}".encode()

        self.shape = (len(labels), 3, size, size)
        self.drawn_from = drawn_from
        self._images = Drawings((len(labels), side, side, 3), draw, drawn_from)

    def __len__(self) -> int:
        return len(self._images)

    def __getitem__(self, index: Any, /) -> Pixels:
        side, first = self.shape[-1], (self._images.shape[1] - self.shape[-1]) // 2
        inside = slice(first, first + side)
        return self._images[index][..., inside, inside, :].swapaxes(-1, -2).swapaxes(-2, -3)

    def uncut(self, indices: Ints) -> list[Pixels]:
        """Return the uncropped images, each (H, H, 3) uint8."""
        return list(self._images[np.asarray(indices, np.int64)])


def image(labels: Ints, seed: int, side: int, index: int) -> Pixels:
    """Draw sample `index` as an image (side, side, 3) uint8; `side` changes only the resolution, not the drawing."""
    return draw(guide()[labels[index]], np.random.default_rng([seed, index]), side)


@reader(INFO)
def read(folder: Path, image_size: int | None, seed: int) -> Samples:
    """Return the samples for `seed`, which determines poses and scenes but not the species; images are drawn later.

    Facts: `family` (N,) in 0..8, index into FAMILIES; `marks` (N, 12) bool, True for each plumage mark of the species,
    in the order of MARKS.
    """
    species = guide()
    labels = np.repeat(np.arange(len(species)), PER_CLASS)
    families = [FAMILIES.index(one.family) for one in species]
    marks = [[mark in one.marks for mark in MARKS] for one in species]
    return Samples(
        inputs=DrawnBirds(labels, seed, image_size or IMAGE_SIZE),
        labels=labels,
        class_names=tuple(one.name for one in species),
        train_classes=len(species) // 2,
        image=partial(image, labels, seed, DISPLAYED),
        facts={"family": np.array(families)[labels], "marks": np.array(marks)[labels]},
    )
