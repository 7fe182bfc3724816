"""Reader of Stanford Cars (CARS196) in four layouts; class numbers define the class-disjoint split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from dmlcore.data.dataset import DataError, Samples, reader
from dmlcore.data.files import lists, matlab
from dmlcore.data.files.image_table import ImageTable, PhotographSet, compact, folders_in, images_in, samples
from dmlcore.data.files.lists import positive
from dmlcore.typing import Bools

TRAIN_CLASSES = 98  # class numbers 1 to 98 are training classes, 99 to 196 test classes
# Name of the last training class. Class numbers are not in alphabetical order, but classes 1 to 98 are exactly the
# first 98 names in alphabetical order. Class folders without annotations can therefore be split as published.
LAST_TRAINING_NAME = "Eagle Talon Hatchback 1998"
LABELLED = "cars_test_annos_withlabels.mat"

INFO = PhotographSet(
    name="cars",
    title="Stanford Cars (CARS196)",
    sentence="Photographs of 196 models of cars; the first 98 train, the last 98 test.",
    citation="J. Krause et al.: 3D Object Representations for Fine-Grained Categorization. 3dRR at ICCV 2013.",
    folder="stanford_cars",
    other_folders=("cars196", "CARS196", "cars", "by_classes_folder", "stanford-car-dataset-by-classes-folder"),
    markers=("devkit/cars_*.mat", "cars_annos.mat", "anno_train.csv", "images/*[12][0-9][0-9][0-9]"),
    images=("cars_train", "car_ims", "car_data", "images"),
    archives=("cars_train.tgz", "cars-annotations.tar.gz"),
    companions={"cars_train.tgz": ("cars_test.tgz", "car_devkit.tgz", LABELLED)},
    url="https://github.com/pytorch/vision/issues/7545 (the official address is offline)",
)


@reader(INFO)
def read(folder: Path, image_size: int | None, seed: int) -> Samples:
    """Read the samples, with inputs (N, 3, S, S) uint8 decoded when indexed; raise DataError if an image is missing."""
    return samples(INFO, folder, read_table(folder), image_size)


def read_table(folder: Path) -> ImageTable:
    """Read the annotations in the first layout that exists in `folder`, preferring layouts that have their images.

    Layouts: cars_annos.mat with car_ims/; devkit/ with cars_train/ and cars_test/; names.csv and anno_*.csv with class
    folders; images/ with class folders and no annotations. Paths are relative to `folder`. Raises DataError naming the
    file.
    """
    layouts: list[tuple[str, str, Callable[[Path], ImageTable]]] = [
        ("cars_annos.mat", "car_ims", _read_single),
        ("devkit", "cars_train", _read_devkit),
        ("anno_train.csv", "car_data", _read_tables),
        ("images", "images", _read_folders),
    ]
    present = [layout for layout in layouts if (folder / layout[0]).exists()]
    if not present:
        raise DataError(f"{folder} has none of {', '.join(layout[0] for layout in layouts)}; see {INFO.url}")
    present.sort(key=lambda layout: not (folder / layout[1]).is_dir())
    return present[0][2](folder)


def _read_single(folder: Path) -> ImageTable:
    """Read cars_annos.mat, which lists all images in random class order; it is the usual layout in metric learning."""
    path = folder / "cars_annos.mat"
    rows = matlab.read(path, INFO)
    is_test = rows.integers("annotations.test")
    if wrong := np.flatnonzero((is_test != 0) & (is_test != 1)).tolist():
        raise DataError(f"{path}: annotations.test, entry {wrong[0] + 1}: expected 0 or 1, got {is_test[wrong[0]]}")
    images = rows.words("annotations.relative_im_path")
    places = [f"{path}, entry {row}" for row in range(1, len(images) + 1)]
    numbers = rows.integers("annotations.class").tolist()
    return _table(images, numbers, places, rows.words("class_names"), is_test == 0)


def _read_devkit(folder: Path) -> ImageTable:
    """Read training and test images, which have separate annotation files, and folders with the same file names."""
    names = matlab.read(folder / "devkit" / "cars_meta.mat", INFO).words("class_names")
    images: list[str] = []
    numbers: list[int] = []
    places: list[str] = []
    is_train: list[bool] = []
    for split, rows in (("cars_train", _devkit_train(folder)), ("cars_test", _devkit_test(folder))):
        # Some copies nest an image folder in a folder of the same name.
        trunk = f"{split}/{split}" if (folder / split / split).is_dir() else split
        names_in_list = rows.words("annotations.fname")
        images += [f"{trunk}/{name}" for name in names_in_list]
        numbers += rows.integers("annotations.class").tolist()
        places += [f"{rows.path}, entry {row}" for row in range(1, len(names_in_list) + 1)]
        is_train += [split == "cars_train"] * len(names_in_list)
    return _table(images, numbers, places, names, np.array(is_train))


def _devkit_train(folder: Path) -> matlab.Variables:
    return matlab.read(folder / "devkit" / "cars_train_annos.mat", INFO)


def _devkit_test(folder: Path) -> matlab.Variables:
    for path in (folder / LABELLED, folder / "devkit" / LABELLED, folder / "devkit" / "cars_test_annos.mat"):
        if path.is_file():
            table = matlab.read(path, INFO)
            if "annotations.class" in table:
                return table
    raise DataError(
        f"{folder / LABELLED} is missing; it contains the labels of the test images, and many copies lack it. Get it "
        f"from {INFO.url}"
    )


def _read_tables(folder: Path) -> ImageTable:
    """Read class folders in train/ and test/ with CSV tables that contain file, bounding box and class number."""
    listed = lists.rows(folder / "names.csv", INFO)
    lists.require_distinct((text, f"{folder / 'names.csv'}:{line}") for line, text in listed)
    names = [text for _, text in listed]
    trunks = ("car_data/car_data/", "car_data/", "")
    trunk = next((trunk for trunk in trunks if (folder / trunk / "train").is_dir()), trunks[0])
    images: list[str] = []
    numbers: list[int] = []
    places: list[str] = []
    is_train: list[bool] = []
    for split in ("train", "test"):
        path = folder / f"anno_{split}.csv"
        for line, text in lists.rows(path, INFO):
            columns = text.split(",")
            number = positive(columns[-1].strip())
            if len(columns) != 6 or not lists.is_inside(columns[0], parts=1) or not 1 <= number <= len(names):
                raise DataError(
                    f"{path}:{line}: expected '<file>,<x1>,<y1>,<x2>,<y2>,<class from 1 to {len(names)}>', got "
                    f"{text[:80]!r}"
                )
            # A folder name cannot contain a slash; the class folders have a hyphen in its place.
            images.append(f"{trunk}{split}/{names[number - 1].replace('/', '-')}/{columns[0]}")
            numbers.append(number)
            places.append(f"{path}:{line}")
            is_train.append(split == "train")
    return _table(images, numbers, places, names, np.array(is_train))


def _table(
    images: Sequence[str],
    numbers: Sequence[int],
    places: Sequence[str],
    names: Sequence[str],
    official_train: Bools,
) -> ImageTable:
    """Build the image table from one entry per image.

    `numbers` are class numbers from 1; `places` are the positions of the entries, named in error messages.
    """
    for image, number, place in zip(images, numbers, places, strict=True):
        if not 1 <= number <= len(names):
            raise DataError(f"{place}: expected a class from 1 to {len(names)}, got {number}")
        if not lists.is_inside(image):
            raise DataError(f"{place}: expected the path of an image, got {image[:80]!r}")
    lists.require_distinct(zip(images, places, strict=True))
    present, labels = compact(numbers)
    return ImageTable(
        paths=tuple(images),
        labels=labels,
        class_names=tuple(names[number - 1] for number in present),
        train_classes=int((present <= TRAIN_CLASSES).sum()),
        official_train=official_train,
    )


def _read_folders(folder: Path) -> ImageTable:
    """Read class folders without annotations, sorted by name; split after LAST_TRAINING_NAME, as published."""
    classes = sorted(folders_in(folder / "images"), key=lambda path: path.name.casefold())
    files = [[f"images/{path.name}/{image.name}" for image in images_in(path)] for path in classes]
    names = [path.name for path, images in zip(classes, files, strict=True) if images]
    counts = [len(images) for images in files if images]
    if not names:
        raise DataError(f"the folders in {folder / 'images'} contain no images; see {INFO.url}")
    return ImageTable(
        paths=tuple(path for images in files for path in images),
        labels=np.repeat(np.arange(len(names), dtype=np.int64), counts),
        class_names=tuple(names),
        train_classes=sum(name.casefold() <= LAST_TRAINING_NAME.casefold() for name in names),
        notes=("there are no annotations next to the images, so there is no official image-wise split",),
    )
