"""Reader of CUB-200-2011: official text lists joined by image number, or image folders named by class number."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dmlcore.data.dataset import DataError, Samples, reader
from dmlcore.data.files import lists
from dmlcore.data.files.image_table import ImageTable, PhotographSet, compact, folders_in, images_in, samples
from dmlcore.data.files.lists import positive

TRAIN_CLASSES = 100  # class numbers 1 to 100 are training classes, 101 to 200 test classes
LISTS = ("images.txt", "image_class_labels.txt", "classes.txt", "train_test_split.txt")

INFO = PhotographSet(
    name="cub",
    title="CUB-200-2011",
    sentence="Photographs of 200 bird species; the first 100 train, the last 100 test.",
    citation="C. Wah et al.: The Caltech-UCSD Birds-200-2011 Dataset. Caltech, CNS-TR-2011-001, 2011.",
    folder="CUB_200_2011",
    other_folders=("cub200", "cub-200-2011", "CUB"),
    markers=("images.txt", "image_class_labels.txt", "classes.txt", "images/[0-2][0-9][0-9].*"),
    images=("images",),
    archives=("CUB_200_2011.tgz", "cub-mini-images.tar.gz", "cub-annotations.tar.gz"),
    url="https://data.caltech.edu/records/65de6-vp158/files/CUB_200_2011.tgz",
)


@reader(INFO)
def read(folder: Path, image_size: int | None, seed: int) -> Samples:
    """Read the samples, with inputs (N, 3, S, S) uint8 decoded when indexed; raise DataError if an image is missing."""
    return samples(INFO, folder / "images", read_table(folder), image_size)


def read_table(folder: Path) -> ImageTable:
    """Join the text lists in `folder`, without needing the images; if there are no lists, read the image folders.

    Paths are relative to images/. Raises DataError naming file and line if the lists are inconsistent.
    """
    if not any((folder / name).is_file() for name in LISTS):
        return _read_folders(folder / "images")
    paths = _read_list(folder / "images.txt")
    class_names = _read_list(folder / "classes.txt")
    class_of = _read_list(folder / "image_class_labels.txt")
    is_train = _read_list(folder / "train_test_split.txt")
    for rows in (class_of, is_train):
        rows.require_numbers_of(paths)
    for rows in (paths, class_names):
        lists.require_distinct((value, rows.places[number]) for number, value in rows.values.items())

    class_numbers = [_class_number(number, paths, class_of, class_names) for number in paths.values]
    present, labels = compact(class_numbers)
    return ImageTable(
        paths=tuple(paths.values.values()),
        labels=labels,
        class_names=tuple(_plain(class_names.values[number]) for number in present),
        train_classes=int((present <= TRAIN_CLASSES).sum()),
        official_train=np.array([_flag(is_train, number) for number in paths.values]),
    )


def _read_folders(images: Path) -> ImageTable:
    """Read the layout without lists, `cub200/images/NNN.Name/*.jpg`, in which NNN is the class number."""
    paths: list[str] = []
    numbers: list[int] = []
    folders: dict[int, str] = {}
    for folder in folders_in(images):
        number = positive(folder.name.partition(".")[0])
        if number == 0:
            raise DataError(
                f"{folder} must start with a class number, for example 001.Black_footed_Albatross; rename it"
            )
        if number in folders:
            raise DataError(f"{folder} has the same class number as {images / folders[number]}; rename one")
        folders[number] = folder.name
        files = [f"{folder.name}/{image.name}" for image in images_in(folder)]
        paths += files
        numbers += [number] * len(files)
    if not paths:
        raise DataError(f"the folders in {images} contain no images; complete them from {INFO.url}")
    present, labels = compact(numbers)
    return ImageTable(
        paths=tuple(paths),
        labels=labels,
        class_names=tuple(_plain(folders[number]) for number in present),
        train_classes=int((present <= TRAIN_CLASSES).sum()),
        notes=("there are no lists next to the images, so there is no official image-wise split",),
    )


@dataclass(frozen=True)
class _List:
    """Parsed text file with lines `<number> <value>`; maps each number to its value and to its position."""

    path: Path
    values: dict[int, str]
    places: dict[int, str]

    def require_numbers_of(self, images: _List) -> None:
        for number in images.values:
            if number not in self.values:
                raise DataError(f"{images.places[number]}: image {number} has no row in {self.path}; restore the lists")
        for number in self.values:
            if number not in images.values:
                raise DataError(f"{self.places[number]}: image {number} is not in {images.path}; restore the lists")


def _read_list(path: Path) -> _List:
    rows = lists.parse(path, lists.rows(path, INFO), lists.NUMBER + r" +(.+)", "'<number from 1> <value>'")
    lists.require_distinct((f"number {number}", place) for place, number, _ in rows)
    values, places = ({int(row[1]): row[column] for row in rows} for column in (2, 0))
    return _List(path, values, places)


def _class_number(image: int, paths: _List, class_of: _List, class_names: _List) -> int:
    """Return the class number of `image`; raise DataError unless the image's folder has the name of that class."""
    value = class_of.values[image]
    number = positive(value)
    if number not in class_names.values:
        raise DataError(f"{class_of.places[image]}: class {value[:80]!r} is not in {class_names.path}")
    if not lists.is_inside(paths.values[image], parts=2):
        raise DataError(f"{paths.places[image]}: expected '<class folder>/<file>', got {paths.values[image][:80]!r}")
    folder = paths.values[image].partition("/")[0]
    if folder != class_names.values[number]:
        raise DataError(
            f"{paths.places[image]}: folder {folder!r} does not belong to class {number}, "
            f"{class_names.values[number]!r} ({class_of.places[image]})"
        )
    return number


def _flag(is_train: _List, image: int) -> bool:
    if is_train.values[image] not in ("0", "1"):
        raise DataError(
            f"{is_train.places[image]}: expected 1 (train) or 0 (test), got {is_train.values[image][:80]!r}"
        )
    return is_train.values[image] == "1"


def _plain(folder: str) -> str:
    """Return the class name that a folder name contains: 'Black footed Albatross' for '001.Black_footed_Albatross'."""
    return folder.partition(".")[2].replace("_", " ") or folder
