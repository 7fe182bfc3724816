"""CUB-200-2011 in its official layout: text lists joined by image number, pictures decoded on first use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from dmlcore.data.dataset import DataError, Description, Labels, Picture, Samples
from dmlcore.data.images import LazyPictures, thumbnail

IMAGES, CLASSES = 11_788, 200
TRAIN_CLASSES = 100  # class numbers 1 to 100 train, 101 to 200 test
IMAGE_SIZE = 64  # pixels a side, unless asked for otherwise
MAX_LIST_BYTES = 64 * 2**20

INFO = Description(
    name="cub",
    title="CUB-200-2011",
    sentence="Photographs of 200 bird species; the first 100 train, the last 100 test.",
    citation="C. Wah et al.: The Caltech-UCSD Birds-200-2011 Dataset. Caltech, CNS-TR-2011-001, 2011.",
    kind="pictures",
    image_size=IMAGE_SIZE,
    resizes=True,
    needs_files=True,
    folder="CUB_200_2011",
    markers=("images.txt", "image_class_labels.txt", "classes.txt"),
    pictures="images",
    archives=("CUB_200_2011.tgz", "cub-mini-images.tar.gz", "cub-annotations.tar.gz"),
    url="https://data.caltech.edu/records/65de6-vp158/files/CUB_200_2011.tgz",
)


@dataclass(frozen=True, eq=False)
class Table:
    """The lists, joined: one row a picture, in the order of images.txt.

    paths are relative to images/; labels (N,) in 0..C-1 number the classes that have pictures, in official order;
    the first `train_classes` of them train in the class-disjoint split; `official_train` is the image-wise split.
    """

    paths: tuple[str, ...]
    labels: Labels
    class_names: tuple[str, ...]
    train_classes: int
    official_train: NDArray[np.bool_]


def read(folder: Path, image_size: int | None, seed: int) -> Samples:
    """Read the lists and check that every picture exists: inputs (N, 3, S, S) uint8, decoded when indexed."""
    table = read_table(folder)
    files = [folder / "images" / path for path in table.paths]
    if not (folder / "images").is_dir():
        raise DataError(
            f"{folder} has the lists of CUB-200-2011 but no pictures: put the folder images of {INFO.url} there, as "
            f"{folder / 'images'}"
        )
    if missing := [file for file in files if not file.is_file()]:
        raise DataError(
            f"{len(missing):,} of {len(files):,} pictures are missing, first {missing[0]}; unpack {INFO.url}"
        )

    def picture(index: int) -> Picture:
        return thumbnail(files[index])

    subset = f"a subset: {len(files):,} of the {IMAGES:,} pictures, {len(table.class_names)} of the {CLASSES} classes"
    return Samples(
        inputs=LazyPictures(files, image_size or IMAGE_SIZE),
        labels=table.labels,
        class_names=table.class_names,
        train_classes=table.train_classes,
        official_train=table.official_train,
        keys=table.paths,
        picture=picture,
        notes=() if len(files) == IMAGES else (subset,),
    )


def read_table(folder: Path) -> Table:
    """Join the lists of `folder`, pictures not needed; raise DataError with file:line where they are inconsistent."""
    paths = _read_list(folder / "images.txt")
    class_names = _read_list(folder / "classes.txt")
    class_of = _read_list(folder / "image_class_labels.txt")
    is_train = _read_list(folder / "train_test_split.txt")
    for rows in (class_of, is_train):
        rows.require_numbers_of(paths)
    _require_distinct(paths)
    _require_distinct(class_names)

    class_numbers = [_class_number(number, paths, class_of, class_names) for number in paths.values]
    present, labels = np.unique(class_numbers, return_inverse=True)
    return Table(
        paths=tuple(paths.values.values()),
        labels=labels.astype(np.int64),
        class_names=tuple(_plain(class_names.values[number]) for number in present),
        train_classes=int((present <= TRAIN_CLASSES).sum()),
        official_train=np.array([_flag(is_train, number) for number in paths.values]),
    )


@dataclass(frozen=True)
class _List:
    """A text file of `<number> <value>` rows."""

    path: Path
    values: dict[int, str]
    lines: dict[int, int]  # number -> line in the file, from 1

    def at(self, number: int) -> str:
        return f"{self.path}:{self.lines[number]}"

    def require_numbers_of(self, images: _List) -> None:
        for number in images.values:
            if number not in self.values:
                raise DataError(f"{images.at(number)}: image {number} has no row in {self.path}; restore the lists")
        for number in self.values:
            if number not in images.values:
                raise DataError(f"{self.at(number)}: image {number} is not in {images.path}; restore the lists")


def _read_list(path: Path) -> _List:
    if not path.is_file():
        raise DataError(f"{path} is missing; restore it from {INFO.url}")
    if path.stat().st_size > MAX_LIST_BYTES:
        raise DataError(f"{path} is larger than {MAX_LIST_BYTES:,} bytes, so it is not a list of CUB-200-2011")
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}:{line}: not UTF-8 text; restore the list") from error
    rows = _List(path, {}, {})
    for line, row in enumerate(text.split("\n"), start=1):
        if not row.strip():
            continue
        first, _, value = row.strip().partition(" ")  # strip: CRLF copies
        number = _positive(first)
        if number == 0 or not value:
            raise DataError(f"{path}:{line}: expected '<number from 1> <value>', got {row.strip()[:80]!r}")
        if number in rows.values:
            raise DataError(f"{path}:{line}: number {number} was given in line {rows.lines[number]} already")
        rows.values[number], rows.lines[number] = value.strip(), line
    if not rows.values:
        raise DataError(f"{path} is empty; restore it from {INFO.url}")
    return rows


def _positive(text: str) -> int:
    """Return the number from 1 to 999999999 that `text` is, else 0."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _require_distinct(rows: _List) -> None:
    first: dict[str, int] = {}
    for number, value in rows.values.items():
        if value in first:
            raise DataError(f"{rows.at(number)}: {value} was given in line {rows.lines[first[value]]} already")
        first[value] = number


def _class_number(image: int, paths: _List, class_of: _List, class_names: _List) -> int:
    """Return the class of `image`, checked against classes.txt and against the picture's folder."""
    value = class_of.values[image]
    number = _positive(value)
    if number not in class_names.values:
        raise DataError(f"{class_of.at(image)}: class {value[:80]!r} is not in {class_names.path}")
    parts = PurePosixPath(paths.values[image]).parts
    if len(parts) != 2 or ".." in parts or "/" in parts or "\0" in paths.values[image]:
        raise DataError(f"{paths.at(image)}: expected '<class folder>/<file>', got {paths.values[image][:80]!r}")
    if parts[0] != class_names.values[number]:
        raise DataError(
            f"{paths.at(image)}: folder {parts[0]!r} does not belong to class {number}, {class_names.values[number]!r} "
            f"({class_of.at(image)})"
        )
    return number


def _flag(is_train: _List, image: int) -> bool:
    if is_train.values[image] not in ("0", "1"):
        raise DataError(f"{is_train.at(image)}: expected 1 (train) or 0 (test), got {is_train.values[image][:80]!r}")
    return is_train.values[image] == "1"


def _plain(folder: str) -> str:
    """Turn '001.Black_footed_Albatross' into 'Black footed Albatross'."""
    return folder.partition(".")[2].replace("_", " ") or folder
