"""Reader of Omniglot: characters of fifty alphabets, each drawn by twenty writers; tested on unseen alphabets."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from dmlcore.data import published_counts
from dmlcore.data.dataset import DataError, Description, Samples, reader, rows_of
from dmlcore.data.files import image_store, ink
from dmlcore.data.files.cache_folder import cache_error, create_once, damaged_error
from dmlcore.data.files.image_table import folders_in, images_in
from dmlcore.data.files.images import WORKERS, decode
from dmlcore.data.files.locate import cache_folder
from dmlcore.typing import Pixels

INK = "ink.npy"
FEW = 32  # if at most this number of images is indexed, decode only these, which is faster than decoding all
IMAGE_SIZE = 28  # pixels per side to which the images of 105 pixels are reduced, as in the few-shot literature

# Folders of training alphabets and of test alphabets; the first pair is preferred. Alphabets in both folders are used
# for training only.
SETS = (("images_background", "images_evaluation"), ("images_background_small1", "images_background_small2"))

INFO = Description(
    name="omniglot",
    title="Omniglot",
    sentence="Handwritten characters by twenty writers each; tested on unseen alphabets.",
    citation="Lake, Salakhutdinov, Tenenbaum: Human-level concept learning through probabilistic program induction. "
    "Science 350, 2015.",
    kind="images",
    image_size=IMAGE_SIZE,
    channels=1,
    resizes=True,
    needs_files=True,
    folder="omniglot-py",
    other_folders=("omniglot", "python"),
    markers=tuple(f"{train}/*/character01" for train, _ in SETS),
    archives=tuple(f"{train}.zip" for train, _ in SETS),
    companions={f"{train}.zip": (f"{test}.zip",) for train, test in SETS},
    url="https://github.com/brendenlake/omniglot/tree/master/python",
)


@reader(INFO)
def read(folder: Path, image_size: int | None, seed: int) -> Samples:
    """Read the complete sets if both exist, else the small sets; inputs are (N, 1, S, S) uint8, 255 for ink.

    Facts: `alphabet` (N,), index of the alphabet, training alphabets first; `drawer` (N,), number of the writer, from
    1. Classes are named like "Greek 07". Raises DataError naming the folder or file and its defect.
    """
    train, test = _folders(folder)
    # Training classes come first; an alphabet in both folders counts as a training alphabet.
    known = {path.name for path in folders_in(train)}
    alphabets = [*folders_in(train), *(path for path in folders_in(test) if path.name not in known)]
    classes = [(number, path) for number, alphabet in enumerate(alphabets) for path in folders_in(alphabet)]
    files = [images_in(path) for _, path in classes]
    for (_, path), drawings in zip(classes, files, strict=True):
        if not drawings:
            raise DataError(f"{path} contains no images; complete the data set")
    paths = [path for drawings in files for path in drawings]
    labels = np.repeat(np.arange(len(classes)), [len(drawings) for drawings in files])
    train_classes = sum(alphabets[number].parent == train for number, _ in classes)
    if not 0 < train_classes < len(classes):
        raise DataError(f"{folder} needs different alphabets in {train.name} and {test.name}; complete the data set")
    pixels = Ink(paths, image_size or IMAGE_SIZE)
    return Samples(
        inputs=pixels,
        labels=labels,
        class_names=tuple(f"{path.parent.name} {path.name.removeprefix('character')}" for _, path in classes),
        train_classes=train_classes,
        keys=[path.relative_to(folder).as_posix() for path in paths],
        files=paths,
        image=partial(ink.image, pixels),
        notes=(
            f"{train.name} trains, {test.name} tests; alphabets in both are used for training only",
            *published_counts.deviations(INFO.name, labels, train_classes),
        ),
        facts={
            "alphabet": np.array([number for number, _ in classes])[labels],
            "drawer": np.array([_drawer(path) for path in paths]),
        },
    )


class Ink:
    """Images of ink drawings as (N, 1, size, size) uint8, 0 for paper and 255 for ink, decoded when first read.

    If at most FEW images are indexed, only these are decoded; otherwise all images are decoded once and cached.
    Indexing follows numpy along the first axis. Raises DataError naming a file that is not an image.
    """

    dtype = np.dtype(np.uint8)

    def __init__(self, paths: Sequence[Path], size: int) -> None:
        self._paths, self.shape = paths, (len(paths), 1, size, size)
        self._guard = threading.Lock()
        self._pixels: Pixels | None = None

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, index: Any, /) -> Pixels:
        rows = rows_of(index, len(self))
        if self._pixels is None and rows.size <= FEW:
            decoded = _decoded([self._paths[row] for row in rows.ravel().tolist()], self.shape[-1])
            return decoded.reshape(*rows.shape, *self.shape[1:])
        with self._guard:
            if self._pixels is None:
                self._pixels = _kept(self._paths, self.shape[-1])
            return self._pixels[rows]


def _kept(paths: Sequence[Path], size: int) -> Pixels:
    folder, what = cache_folder() / "ink", "the decoded images"
    place = create_once(
        folder,
        *image_store.names(paths, size),
        INK,
        lambda staging: np.save(staging / INK, _decoded(paths, size)),
        what,
    )
    try:
        pixels: Pixels = np.load(place / INK, allow_pickle=False)
    except OSError as error:
        raise cache_error(folder, what, error) from error
    except (ValueError, EOFError):
        pixels = np.empty(0, np.uint8)
    if pixels.shape != (len(paths), 1, size, size) or pixels.dtype != np.uint8:
        raise damaged_error(place, what)
    return pixels


def _decoded(paths: Sequence[Path], size: int) -> Pixels:
    """Decode images as ink (255) on paper (0) and average them to `size` pixels per side, (N, 1, size, size)."""

    def one(path: Path) -> Pixels:
        grey = decode(path).convert("L").resize((size, size), Image.Resampling.BOX)
        return 255 - np.asarray(grey)

    pixels = np.empty((len(paths), 1, size, size), np.uint8)
    with ThreadPoolExecutor(WORKERS) as pool:
        for place, drawing in zip(pixels, pool.map(one, paths), strict=True):
            place[0] = drawing
    return pixels


def _folders(folder: Path) -> tuple[Path, Path]:
    for train, test in SETS:
        if (folder / train).is_dir() and (folder / test).is_dir():
            return folder / train, folder / test
    lacking: Iterator[str] = (test for train, test in SETS if (folder / train).is_dir())
    raise DataError(f"{folder / next(lacking, SETS[0][0])} is missing; put it next to the other folder of {INFO.url}")


def _drawer(path: Path) -> int:
    try:
        return int(path.stem.rpartition("_")[2])
    except ValueError:
        raise DataError(f"{path} is not named CHARACTER_DRAWER as in the official sets; restore the name") from None
