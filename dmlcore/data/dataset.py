"""Data types of `dmlcore.data`: descriptions, samples as readers return them, and split data sets."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Generic, Literal, Protocol, TypeVar, overload

import numpy as np

from dmlcore.catalogue import Catalogue
from dmlcore.data.printable import encodable, printable, printable_names
from dmlcore.typing import Array, Bools, Halves, Ints, Pixels

# "own": the data set defines its splits; "none": all samples are tested, none are trained on
Split = Literal["classes", "samples", "own", "none"]
Damaged = Literal["error", "skip"]  # action if images cannot be decoded: raise an error, or leave them out
Validation = Literal["classes", "samples", "none", "own"]

S = TypeVar("S")
T = TypeVar("T")


class DataError(ValueError):
    """Error raised if a data set is missing, damaged or cannot be split as requested; the message suggests a remedy."""

    def __str__(self) -> str:
        return encodable(super().__str__())  # a file name in the message may contain undecodable bytes


def rows_of(index: Any, count: int) -> Ints:
    """Return the row numbers that a numpy index selects from `count` rows; raise IndexError for several axes."""
    if isinstance(index, tuple):
        raise IndexError("these inputs can only be indexed along their first axis")
    rows: Ints = np.arange(count)[index]
    return rows


class LazySequence(Sequence[T], Generic[S, T]):
    """Sequence of `make(row)` for each of `rows`; each item is created on access, because creating all is slow."""

    def __init__(self, rows: Sequence[S], make: Callable[[S], T]) -> None:
        self.rows, self._make = rows, make

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> LazySequence[S, T]: ...
    def __getitem__(self, index: int | slice) -> T | LazySequence[S, T]:
        if isinstance(index, slice):
            return LazySequence(self.rows[index], self._make)
        return self._make(self.rows[index])


class FileStatus(Protocol):
    """Size in bytes and modification time of an image file."""

    @property
    def st_size(self) -> int: ...

    @property
    def st_mtime_ns(self) -> int: ...


class ImageFile(Protocol):
    """Image file that can be opened: a Path, or an image in a shard. `str` returns its name."""

    def open(self, mode: Literal["rb"], /) -> IO[bytes]: ...

    def stat(self) -> FileStatus: ...


class Inputs(Protocol):
    """Network inputs: an array, or a sequence of images that are decoded when indexed."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, index: Any, /) -> Any: ...


class Features(Protocol):
    """Feature maps (n, C, h, w) float16 that a frozen backbone precomputed; used instead of the images."""

    def __getitem__(self, indices: Ints, /) -> Halves: ...

    def batch(self, indices: Ints, seed: int, rows: slice = ...) -> Halves: ...

    def open(self) -> None: ...


class MissingImages(DataError):
    """Error raised if a data set has its lists but not its images.

    Attributes:
        samples: Samples as defined by the lists.
        missing: Paths of the missing images.
    """

    def __init__(self, message: str, samples: Samples, missing: Sequence[Path]) -> None:
        super().__init__(message)
        self.samples, self.missing = samples, missing


@dataclass(frozen=True)
class Description:
    """Metadata of a data set that pages and the command line need before reading it."""

    name: str
    title: str
    sentence: str
    citation: str
    kind: Literal["vectors", "images", "tokens"]
    # default way to divide samples into train and test; "own", defined by the data set, cannot be changed
    split: Split = "classes"
    validation: Validation = "classes"  # default for how validation samples are held out; "own" if `split` is "own"
    image_size: int | None = None  # default side length of the square images in pixels; None for vectors and tokens
    channels: int = 3  # number of colour channels of the images: 3 for RGB, 1 for grey
    centre_cut: bool = False  # True if images are centre crops of copies whose shorter side is 256/227 of image_size
    grid: int = 0  # number of tiles per side if images are square collages of tiles, else 0
    resizes: bool = False  # True if `load` accepts other values of image_size
    needs_files: bool = False
    folder: str = ""  # name of the data set folder in the official layout; "" accepts any folder
    other_folders: tuple[str, ...] = ()  # names of the data set folder in other layouts
    # glob patterns, at least one of which must match in the data set folder
    markers: tuple[str, ...] = ()
    images: tuple[str, ...] = (".",)  # subfolders of the data set folder that may hold the images
    archives: tuple[str, ...] = ()  # file names of known archives, in order of preference
    # file name of an archive -> names of the files that are unpacked into the same folder
    companions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    url: str = ""  # address of the official archive, or of a page with download instructions


@dataclass(frozen=True, eq=False)
class Samples:
    """All samples of a data set before splitting, as a reader returns them.

    Unprintable characters in class names, keys and notes are escaped on construction; the paths in `files` are
    unchanged.

    Attributes:
        inputs: (N, F) float32, (N, 3, H, W) uint8 or (N, L) int64 token ids.
        labels: (N,) in 0..C-1; classes below `train_classes` are the training classes of the class-disjoint split.
        official_train: (N,) bool mask of the training samples in the official image-wise split.
        gallery: (N,) bool mask of the test samples that are ranked for each query; the other test samples are the
            queries.
        keys: Unique names of the samples, used to check that no sample is in two splits.
        files: Files of the images; None if samples are not image files.
        splits: Indices of "train", "validation" and "test" if the data set defines its own splits.
        image: Function that maps a sample index to an image (h, w, 3) uint8 for display.
        notes: Messages about the data set, shown to users.
        facts: Additional attributes of the samples by name, each of shape (N, ...).
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
        # A LazySequence, such as the keys of shards, escapes each key when it is accessed.
        if isinstance(self.keys, list | tuple):
            object.__setattr__(self, "keys", printable_names(self.keys, sys.maxsize))


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set divided into splits.

    Attributes:
        inputs: inputs[indices] is (n, F) float32, (n, 3, H, W) uint8 or (n, L) int64 token ids.
        labels: (N,) int64 in 0..C-1.
        splits: Disjoint ascending indices of the splits "train", "validation" (may be empty) and "test". If there is a
            separate gallery, "test" holds the queries and "gallery" the samples that are ranked for each query.
        image: Function that maps a sample index to an image (h, w, 3) uint8 for display; None for plain vectors.
        notes: Messages for users, such as sizes of the splits and samples that were left out.
        facts: Additional attributes of the samples by name, each of shape (N, ...); they depend on the data set.
        keys: Name of each image in the lists of the data set; None if there are no lists.
        files: File of each image; None if samples are not image files.
        settings: Values that determine the splits, under the names of the DataSpec settings, and "seed".
        features: Feature maps of a frozen backbone for each input; None if no backbone is frozen.
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


Read = Callable[[Path, int | None, int], Samples]  # arguments: folder, image_size, seed
DATASETS: Catalogue[tuple[Description, Read]] = Catalogue("data set")


def reader(info: Description) -> Callable[[Read], Read]:
    """Return a decorator that registers a data set, described by `info`, with the decorated function as its reader."""

    def enter(read: Read) -> Read:
        DATASETS.enter(info.name, (info, read))
        return read

    return enter
