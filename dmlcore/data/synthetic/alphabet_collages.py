"""Collages of characters: one tile shows the class, the others show background characters that all classes share."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dmlcore.data.dataset import DataError, Samples, reader
from dmlcore.data.files import ink
from dmlcore.data.readers import omniglot
from dmlcore.data.synthetic import collage
from dmlcore.data.synthetic.collage import Recipe, TileImages
from dmlcore.data.synthetic.glyphs import glyphs
from dmlcore.typing import Bools, Ints

RECIPE = Recipe(side=2, showing=1)
# fraction of the writers whose background characters each split uses
BACKGROUNDS = {"train": 0.5, "validation": 0.2, "test": 0.3}

OMNIGLOT, GLYPHS = (
    replace(
        info,
        name=name,
        title=title,
        sentence=sentence,
        split="own",
        validation="own",
        image_size=RECIPE.side * omniglot.IMAGE_SIZE,
        channels=1,
        grid=RECIPE.side,
    )
    for info, name, title, sentence in (
        (
            omniglot.INFO,
            "omniglot_collage",
            "Omniglot-Collage",
            "A handwritten character among three Latin letters, which all classes share; tested on unseen alphabets.",
        ),
        (
            glyphs.INFO,
            "glyph_collage",
            "Glyph-Collage",
            "An invented character among three that all classes share; tested on unseen alphabets; no download.",
        ),
    )
)
# Omniglot alphabet of the backgrounds; alphabets that are held out for validation
LATIN, GREEK = "Latin", ("Greek",)
FIRST, LAST_TWO = glyphs.ALPHABETS[0], glyphs.ALPHABETS[glyphs.TRAIN_ALPHABETS - 2 : glyphs.TRAIN_ALPHABETS]


@reader(OMNIGLOT)
def read_omniglot(folder: Path, image_size: int | None, seed: int) -> Samples:
    """Create Omniglot collages (N, 1, S, S) uint8 for `seed`; backgrounds are Latin, and Greek is for validation."""
    return make_collages(omniglot.read(folder, _tile(image_size), 0), behind=LATIN, validation=GREEK, seed=seed)


@reader(GLYPHS)
def read_glyphs(folder: Path, image_size: int | None, seed: int) -> Samples:
    """Create glyph collages (N, 1, S, S) uint8 for `seed`.

    The backgrounds are characters from the first alphabet (Aruvel); the last two training alphabets are for validation.
    """
    return make_collages(glyphs.read(folder, _tile(image_size), seed), behind=FIRST, validation=LAST_TWO, seed=seed)


def make_collages(
    samples: Samples, *, behind: str, validation: Collection[str], seed: int, recipe: Recipe = RECIPE
) -> Samples:
    """Create one collage for each image of `samples` outside the background alphabet.

    Classes must be named like "Greek 07"; they are renumbered, training classes first. Facts: `tiles` (N, T), indices
    into `samples`; `shows` (N, T), mask of the tiles that show the class; `foreground` (N,), position of the first of
    these tiles; and the facts of the image for which each collage is created.

    Args:
        samples: Samples of characters.
        behind: Training alphabet whose characters are the backgrounds. Its images are divided by writer among the
            splits, so that no image is in two splits.
        validation: Training alphabets whose classes are held out for validation.
        seed: Seed of the choice of backgrounds and of the order of tiles.
        recipe: Layout of a collage.

    Raises:
        DataError: If `behind` or one of `validation` is not a training alphabet.
    """
    alphabet = np.array([name.rpartition(" ")[0] for name in samples.class_names])
    trains = np.arange(len(alphabet)) < samples.train_classes
    for name in (behind, *validation):
        if name not in alphabet[trains]:
            raise DataError(f"collages need the alphabet {name} in the training split; complete the data set")
    is_behind, validates = trains & (alphabet == behind), trains & np.isin(alphabet, list(validation))
    kinds = {"train": trains & ~is_behind & ~validates, "validation": validates, "test": ~trains}
    hands = _divide_by_writer(samples, np.flatnonzero(is_behind))
    splits = {
        split: TileImages(np.flatnonzero(classes[samples.labels]), hands[split]) for split, classes in kinds.items()
    }
    layout = collage.lay_out(splits, samples.labels, seed, recipe)
    inputs = collage.collages(samples.inputs, layout, splits["train"], samples.labels, recipe)
    order = np.concatenate([np.flatnonzero(classes) for classes in kinds.values()])
    label_of = np.full(len(alphabet), -1)
    label_of[order] = np.arange(len(order))
    facts = {"tiles": layout.tiles, "shows": layout.shows, "foreground": layout.foreground}
    return Samples(
        inputs=inputs,
        labels=label_of[samples.labels[layout.front]],
        class_names=tuple(samples.class_names[number] for number in order),
        train_classes=int(kinds["train"].sum()),
        splits=layout.splits,
        image=partial(ink.image, inputs),
        notes=(_describe_split(alphabet, kinds, behind),),
        facts=facts | {name: values[layout.front] for name, values in samples.facts.items()},
    )


def _divide_by_writer(samples: Samples, classes: Ints) -> dict[str, Ints]:
    """Divide background images, those of `classes`, among the splits by writer; return the indices for each split."""
    hands: dict[str, list[Ints]] = {split: [] for split in BACKGROUNDS}
    for number in classes:
        rows = np.flatnonzero(samples.labels == number)
        ends = np.rint(np.cumsum(list(BACKGROUNDS.values()))[:-1] * len(rows)).astype(int)
        for split, some in zip(BACKGROUNDS, np.split(rows, ends), strict=True):
            hands[split].append(some)
    return {split: np.concatenate(some) for split, some in hands.items()}


def _describe_split(alphabet: NDArray[np.str_], kinds: dict[str, Bools], behind: str) -> str:
    words = {"train": "train", "validation": "validate", "test": "test"}
    names = {
        split: [name.replace("_", " ") for name in dict.fromkeys(alphabet[classes])] for split, classes in kinds.items()
    }
    groups = [f"{', '.join(hands)} {words[split]}{'s' * (len(hands) == 1)}" for split, hands in names.items()]
    return f"{'; '.join(groups)}; {behind} is behind every character"


def _tile(image_size: int | None) -> int | None:
    """Return the side in pixels of one tile in a collage of `image_size` pixels per side; None for None."""
    if image_size is None:
        return None
    if image_size % RECIPE.side:
        raise DataError(
            f"image_size must be a multiple of {RECIPE.side}, the number of tiles per side; got {image_size}"
        )
    return image_size // RECIPE.side
