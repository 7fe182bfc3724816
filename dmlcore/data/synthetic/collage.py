"""Collages from any set of images: some tiles show the class, the others show backgrounds that all classes share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import isqrt
from typing import Any

import numpy as np

from dmlcore.data.dataset import DataError, Inputs, rows_of
from dmlcore.typing import Bools, Ints, Pixels

# arguments: indices of collages, seed; returns a new choice and order of their tiles
Arrange = Callable[[Ints, int], Ints]


@dataclass(frozen=True)
class Recipe:
    """Layout of a collage with `side` x `side` tiles, of which `showing` tiles show the class."""

    side: int = 2
    showing: int = 1

    def __post_init__(self) -> None:
        if self.side < 1 or not 0 < self.showing <= self.tiles:
            raise ValueError(f"a collage needs side >= 1 and 1 <= showing <= side x side, got {self}")

    @property
    def tiles(self) -> int:
        """Number of tiles in a collage."""
        return self.side * self.side


@dataclass(frozen=True, eq=False)
class TileImages:
    """Indices of the images from which the collages of one split are made.

    Attributes:
        front: Foreground images, shape (n,); each gets one collage.
        behind: Background images, shape (k,).
    """

    front: Ints
    behind: Ints


@dataclass(frozen=True, eq=False)
class CollageLayout:
    """Choice and order of the images in each collage, and splits of the collages.

    Attributes:
        tiles: Indices of the images in each collage, shape (N, T), from left to right and top to bottom.
        shows: Mask (N, T) of the tiles that show the class.
        front: Index of the image for which each collage is created, shape (N,); it is one of the tiles.
        splits: Indices of the collages in each split.
    """

    tiles: Ints
    shows: Bools
    front: Ints
    splits: dict[str, Ints]

    @property
    def foreground(self) -> Ints:
        """Position (N,) in 0..T-1 of the first tile that shows the class."""
        places: Ints = np.argmax(self.shows, axis=1)
        return places


class Collages:
    """Collages (N, C, H, W) uint8, assembled from their tiles on each access.

    They are not stored, because 48,000 collages of CIFAR images would take 590 MB in addition to 184 MB for the tiles.
    Indexing follows numpy along the first axis and returns a copy.
    """

    dtype = np.dtype(np.uint8)

    def __init__(self, pixels: Inputs, tiles: Ints, anew: Arrange | None = None) -> None:
        self._pixels, self._tiles, self._anew = pixels, tiles, anew
        self._side = isqrt(tiles.shape[1])
        channels, height, width = pixels.shape[1:]
        self.shape = (len(tiles), channels, self._side * height, self._side * width)

    def __len__(self) -> int:
        return len(self._tiles)

    def __getitem__(self, index: Any, /) -> Pixels:
        return self._together(self._tiles[rows_of(index, len(self))])

    def fresh(self, indices: Ints, seed: int, rows: slice = slice(None)) -> Pixels:
        """Return new collages (n, C, H, W) with the same foreground images, but random training backgrounds.

        `rows` selects a part of the n collages to return; it does not change the returned collages.
        """
        if self._anew is None:
            raise DataError("these collages are fixed; they cannot be rearranged")
        return self._together(self._anew(indices, seed)[rows])

    def _together(self, tiles: Ints) -> Pixels:
        height, width = self._pixels.shape[2:]
        collages = np.empty((*tiles.shape[:-1], *self.shape[1:]), dtype=np.uint8)
        for place in range(tiles.shape[-1]):
            row, column = divmod(place, self._side)
            down, right = slice(row * height, (row + 1) * height), slice(column * width, (column + 1) * width)
            collages[..., down, right] = self._pixels[tiles[..., place]]
        return collages


def lay_out(splits: Mapping[str, TileImages], labels: Ints, seed: int, recipe: Recipe = Recipe()) -> CollageLayout:
    """Create the layout of one collage per foreground image, split by split.

    `labels` (M,) are the classes of all images. Backgrounds are drawn without replacement from the shuffled images,
    which are reshuffled when fewer are left than a collage needs. Tiles are in random order. Raises DataError if there
    are too few images for one collage.
    """
    random = np.random.default_rng(seed)
    tiles, shows, rows = [], [], {}
    begin = 0
    for name, images in splits.items():
        arranged, is_front = _arrange(images.front, images, labels, recipe, random)
        tiles.append(arranged)
        shows.append(is_front)
        rows[name] = np.arange(begin, begin + len(arranged))
        begin += len(arranged)
    front = np.concatenate([images.front for images in splits.values()])
    return CollageLayout(np.concatenate(tiles), np.concatenate(shows), front, rows)


def collages(
    pixels: Inputs, layout: CollageLayout, training: TileImages, labels: Ints, recipe: Recipe = Recipe()
) -> Collages:
    """Return the collages of a layout, assembled from `pixels` (M, C, h, w).

    `Collages.fresh` draws the images of new collages from `training`.
    """
    return Collages(pixels, layout.tiles, partial(_rearrange, layout.front, training, labels, recipe))


def _rearrange(front: Ints, training: TileImages, labels: Ints, recipe: Recipe, indices: Ints, seed: int) -> Ints:
    return _arrange(front[indices], training, labels, recipe, np.random.default_rng(seed))[0]


def _arrange(
    front: Ints, images: TileImages, labels: Ints, recipe: Recipe, random: np.random.Generator
) -> tuple[Ints, Bools]:
    """Return the tiles (n, T) of one collage per image in `front`, and a mask (n, T) of tiles that show the class."""
    others = recipe.tiles - recipe.showing
    columns = [front[:, None]]
    if recipe.showing > 1:
        columns.append(_draw_same_class(front, images.front, labels, recipe.showing - 1, random))
    if others:
        fit = len(images.behind) // others  # number of collages for which one shuffle of the background images suffices
        if not fit:
            raise DataError(
                f"{others} tiles need backgrounds, but there are only {len(images.behind)}; complete the data set"
            )
        rounds = -(-len(front) // fit)
        behind = np.concatenate([random.permutation(images.behind)[: others * fit] for _ in range(rounds)])
        columns.append(behind.reshape(-1, others)[: len(front)])
    order = random.permuted(np.tile(np.arange(recipe.tiles), (len(front), 1)), axis=1)
    return np.take_along_axis(np.concatenate(columns, axis=1), order, axis=1), order < recipe.showing


def _draw_same_class(front: Ints, images: Ints, labels: Ints, count: int, random: np.random.Generator) -> Ints:
    """Draw, for each image in `front`, `count` other images of the same class; return their indices (n, count)."""
    chosen = np.empty((len(front), count), np.int64)
    members = {label: images[labels[images] == label] for label in np.unique(labels[front])}
    for place, row in enumerate(front.tolist()):
        same = members[labels[row]]
        if len(same) <= count:
            raise DataError(
                f"{count + 1} tiles show the class, but one class has only {len(same)} images; complete the data set"
            )
        chosen[place] = random.permutation(same[same != row])[:count]
    return chosen
