"""The types of `dmlcore.data`: what a reader declares, what it reads, what `load` hands out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal, Protocol

import numpy as np

from dmlcore.catalogue import Catalogue
from dmlcore.data.printable import encodable, printable, printable_names
from dmlcore.typing import Array, Bools, Halves, Ints, Pixels

Split = Literal["classes", "samples", "own"]  # own: the data set brings its splits
Damaged = Literal["error", "skip"]  # what becomes of images that cannot be decoded
Validation = Literal["classes", "samples", "none", "own"]


class DataError(ValueError):
    """A data set is missing, damaged or cannot be split as asked; the message names the file and the remedy."""

    def __str__(self) -> str:
        return encodable(super().__str__())  # a file that it names may have any bytes as its name


def rows_of(index: Any, count: int) -> Ints:
    """The rows that numpy's `index` takes of `count` along the first axis, in its shape; IndexError for other axes."""
    if isinstance(index, tuple):
        raise IndexError("these inputs are indexed along the first axis alone")
    rows: Ints = np.arange(count)[index]
    return rows


class FileStatus(Protocol):
    """Of an image file: bytes, and when it was changed."""

    @property
    def st_size(self) -> int: ...

    @property
    def st_mtime_ns(self) -> int: ...


class ImageFile(Protocol):
    """Where an image lies: a Path, or a part of a shard; `str` names it."""

    def open(self, mode: Literal["rb"], /) -> IO[bytes]: ...

    def stat(self) -> FileStatus: ...


class Inputs(Protocol):
    """Network inputs: an array, or images that are decoded on first use."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, index: Any, /) -> Any: ...


class Features(Protocol):
    """Feature maps of a frozen backbone, (n, C, h, w) float16, in place of the images that they are of."""

    def __getitem__(self, indices: Ints, /) -> Halves: ...

    def batch(self, indices: Ints, seed: int, rows: slice = ...) -> Halves: ...

    def open(self) -> None: ...


class MissingImages(DataError):
    """The lists are there but images are not; `samples` is what the lists say, `missing` the files."""

    def __init__(self, message: str, samples: Samples, missing: Sequence[Path]) -> None:
        super().__init__(message)
        self.samples, self.missing = samples, missing


@dataclass(frozen=True)
class Description:
    """What a page or the command line must know of a data set before reading it."""

    name: str
    title: str
    sentence: str
    citation: str
    kind: Literal["vectors", "images", "tokens"]
    split: Split = "classes"  # default; "own" leaves no choice
    validation: Validation = "classes"  # default; "own" where split is
    image_size: int | None = None  # default side of the square images in pixels; None for vectors and tokens
    channels: int = 3  # of the images: 3 for RGB, 1 for grey
    centre_cut: bool = False  # images are centre cuts of copies whose shorter side is 256/227 of image_size
    grid: int = 0  # tiles a side, where each image is a collage
    resizes: bool = False  # whether `load` takes another image_size
    needs_files: bool = False
    folder: str = ""  # of the official layout; "" if any folder will do that is given as root
    other_folders: tuple[str, ...] = ()  # names it has in other layouts
    markers: tuple[str, ...] = ()  # patterns of files or folders, of which one at least shows that a folder is it
    images: tuple[str, ...] = (".",)  # folders in it of which one at least holds images
    archives: tuple[str, ...] = ()  # file names, preferred first
    companions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # archive -> files it is unpacked with
    url: str = ""  # of the official archive, or of a page that says how to get it


@dataclass(frozen=True, eq=False)
class Samples:
    """All samples of a data set before splitting: what a reader returns.

    inputs (N, F) float32, (N, 3, H, W) uint8 or (N, L) int64 token ids; labels (N,) in 0..C-1, where labels below
    `train_classes` are the training classes of the class-disjoint split; `official_train` (N,) bool is the official
    image-wise split; `gallery` (N,) bool are the test samples that are only searched, the others being the queries;
    `keys` identify the images, so that no image gets into two splits; `files` are theirs, where each has one;
    `splits` are "train", "validation" and "test" of a data set that brings its own; `facts` (N, ...) say more of each
    sample. Names of classes, keys and notes are made printable here, once for all readers; `files` keep their names.
    """

    inputs: Inputs
    labels: Ints
    class_names: tuple[str, ...]
    train_classes: int
    official_train: Bools | None = None
    gallery: Bools | None = None
    keys: Sequence[str] | None = None
    files: Sequence[ImageFile] | None = None
    splits: Mapping[str, Ints] | None = None
    image: Callable[[int], Pixels] | None = None
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "class_names", tuple(printable_names(self.class_names)))
        object.__setattr__(self, "notes", tuple(map(printable, self.notes)))
        if isinstance(self.keys, list | tuple):  # others make each key printable when it is asked for
            object.__setattr__(self, "keys", printable_names(self.keys, sys.maxsize))


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set split into splits.

    inputs[indices] -> (n, F) float32, (n, 3, H, W) uint8 or (n, L) int64 token ids; labels (N,) int64 in 0..C-1;
    splits: "train", "validation" (may be empty) and "test" -> disjoint ascending indices, and where queries search a
    gallery of their own "gallery", "test" then being the queries; image(index) -> (h, w, 3) uint8 for display, None
    for plain vectors; notes: what was left out or counted, in plain words; facts: more of each sample (N, ...) by
    name, as the reader of the data set says; keys: the name of each image in the lists, and files: where it lies,
    None where there is none; settings: how it was split, by the names of DataSpec and "seed"; features: what a frozen
    backbone makes of each input, None where nothing is frozen.
    """

    name: str
    inputs: Inputs
    labels: Ints
    class_names: tuple[str, ...]
    splits: Mapping[str, Ints]
    image: Callable[[int], Pixels] | None
    notes: tuple[str, ...]
    facts: Mapping[str, Array] = field(default_factory=dict)
    keys: Sequence[str] | None = None
    files: Sequence[ImageFile] | None = None
    settings: Mapping[str, str | int] = field(default_factory=dict)
    features: Features | None = None


Read = Callable[[Path, int | None, int], Samples]  # (folder, image_size, seed)
DATASETS: Catalogue[tuple[Description, Read]] = Catalogue("data set")


def reader(info: Description) -> Callable[[Read], Read]:
    """Enter a data set into the catalogue, above the function that reads its folder."""

    def enter(read: Read) -> Read:
        DATASETS.enter(info.name, (info, read))
        return read

    return enter
