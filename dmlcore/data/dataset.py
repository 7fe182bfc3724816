"""Types of `dmlcore.data`: descriptions, samples as readers return them, and split data sets."""

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

Split = Literal["classes", "samples", "own"]  # own: the data set defines its splits
Damaged = Literal["error", "skip"]  # treatment of images that cannot be decoded
Validation = Literal["classes", "samples", "none", "own"]


class DataError(ValueError):
    """Error of a data set that is missing, damaged or cannot be split as requested; it names file and remedy."""

    def __str__(self) -> str:
        return encodable(super().__str__())  # a file name may contain any bytes


def rows_of(index: Any, count: int) -> Ints:
    """Return the rows that numpy's `index` selects from `count` rows; raise IndexError for more than one axis."""
    if isinstance(index, tuple):
        raise IndexError("these inputs are indexed along the first axis alone")
    rows: Ints = np.arange(count)[index]
    return rows


class FileStatus(Protocol):
    """Size in bytes and modification time of an image file."""

    @property
    def st_size(self) -> int: ...

    @property
    def st_mtime_ns(self) -> int: ...


class ImageFile(Protocol):
    """Location of an image: a Path, or a part of a shard; `str` returns its name."""

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
    """Feature maps of a frozen backbone, (n, C, h, w) float16, used instead of the images."""

    def __getitem__(self, indices: Ints, /) -> Halves: ...

    def batch(self, indices: Ints, seed: int, rows: slice = ...) -> Halves: ...

    def open(self) -> None: ...


class MissingImages(DataError):
    """Error of a data set whose lists exist but whose images do not; `samples` holds the lists, `missing` the files."""

    def __init__(self, message: str, samples: Samples, missing: Sequence[Path]) -> None:
        super().__init__(message)
        self.samples, self.missing = samples, missing


@dataclass(frozen=True)
class Description:
    """Facts about a data set that pages and the command line need before reading it."""

    name: str
    title: str
    sentence: str
    citation: str
    kind: Literal["vectors", "images", "tokens"]
    split: Split = "classes"  # default; "own" allows no other
    validation: Validation = "classes"  # default; "own" if split is "own"
    image_size: int | None = None  # default side of the square images in pixels; None for vectors and tokens
    channels: int = 3  # channels of the images: 3 for RGB, 1 for grey
    centre_cut: bool = False  # images are centre crops of copies whose shorter side is 256/227 of image_size
    grid: int = 0  # tiles per side if each image is a collage
    resizes: bool = False  # True if `load` accepts another image_size
    needs_files: bool = False
    folder: str = ""  # folder of the official layout; "" accepts any folder given as root
    other_folders: tuple[str, ...] = ()  # names of the folder in other layouts
    markers: tuple[str, ...] = ()  # patterns of files or folders, at least one of which must exist in the folder
    images: tuple[str, ...] = (".",)  # subfolders, at least one of which must hold images
    archives: tuple[str, ...] = ()  # file names, preferred first
    # archive -> files that are unpacked together with it
    companions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    url: str = ""  # address of the official archive, or of a page with instructions


@dataclass(frozen=True, eq=False)
class Samples:
    """All samples of a data set before splitting, as a reader returns them.

    Names of classes, keys and notes are made printable here, once for all readers; `files` keep their names.

    Attributes:
        inputs: (N, F) float32, (N, 3, H, W) uint8 or (N, L) int64 token ids.
        labels: (N,) in 0..C-1; those below `train_classes` are the training classes of the class-disjoint split.
        official_train: (N,) bool, the official image-wise split.
        gallery: (N,) bool, test samples that are only searched; the other test samples are the queries.
        keys: Identifiers of the images, so that no image gets into two splits.
        files: Locations of the images, if each has one.
        splits: "train", "validation" and "test" of a data set that defines its splits.
        facts: Further values of each sample, (N, ...) by name.
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
        if isinstance(self.keys, list | tuple):  # other sequences make each key printable on access
            object.__setattr__(self, "keys", printable_names(self.keys, sys.maxsize))


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set divided into splits.

    Attributes:
        inputs: inputs[indices] is (n, F) float32, (n, 3, H, W) uint8 or (n, L) int64 token ids.
        labels: (N,) int64 in 0..C-1.
        splits: "train", "validation" (may be empty) and "test" -> disjoint ascending indices. If queries search a
            gallery of their own, "gallery" holds its samples and "test" the queries.
        image: Function from an index to (h, w, 3) uint8 for display; None for plain vectors.
        notes: Sentences on samples that were left out or counted.
        facts: Further values of each sample, (N, ...) by name, depending on the data set.
        keys: Name of each image in the lists, if there are any.
        files: Location of each image, if there is any.
        settings: Settings of the split, by the names of DataSpec and "seed".
        features: Feature maps of a frozen backbone for each input, if a backbone is frozen.
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
    """Register a data set; decorates the function that reads its folder."""

    def enter(read: Read) -> Read:
        DATASETS.enter(info.name, (info, read))
        return read

    return enter
