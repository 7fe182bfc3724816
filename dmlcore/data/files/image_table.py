"""Table that joins the lists of an image data set, and its conversion to Samples."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from dmlcore.data import published_counts
from dmlcore.data.dataset import Description, ImageFile, LazySequence, MissingImages, Samples
from dmlcore.data.files.image_store import StoredImages
from dmlcore.data.files.images import SUFFIXES, thumbnail
from dmlcore.typing import Bools, Ints, Pixels

IMAGE_SIZE = 64  # default side in pixels


@dataclass(frozen=True)
class PhotographSet(Description):
    """Description of photographs in files, of which centre crops of any size are taken."""

    kind: Literal["vectors", "images", "tokens"] = "images"
    image_size: int | None = IMAGE_SIZE
    centre_cut: bool = True
    resizes: bool = True
    needs_files: bool = True


@dataclass(frozen=True, eq=False)
class ImageTable:
    """Joined lists of an image data set, one row per image, in the order of the lists.

    Attributes:
        paths: Paths relative to the folder of the images, or other unique names.
        labels: Class numbers (N,) in 0..C-1. Only classes with images are numbered, in official order; the first
            `train_classes` are the training classes of the class-disjoint split.
        official_train: (N,) bool mask of the training images in the official image-wise split, if there is one.
        gallery: (N,) bool mask of the test images that are ranked for each query; None if there is no separate gallery.
    """

    paths: Sequence[str]
    labels: Ints
    class_names: tuple[str, ...]
    train_classes: int
    official_train: Bools | None = None
    gallery: Bools | None = None
    notes: tuple[str, ...] = ()


def compact(numbers: Sequence[int]) -> tuple[Ints, Ints]:
    """Return the distinct `numbers`, ascending, and the labels: for each number, its index among the distinct ones."""
    present, labels = np.unique(np.asarray(numbers, dtype=np.int64), return_inverse=True)
    return present, labels.astype(np.int64)


def samples(info: Description, folder: Path, table: ImageTable, image_size: int | None) -> Samples:
    """Return samples (N, 3, S, S) uint8, decoded when indexed; raise MissingImages if an image is not in `folder`."""
    files = LazySequence(table.paths, folder.joinpath)
    samples_read = of_files(info, files, table, image_size)
    missing = LazySequence(_missing(folder, table.paths), folder.joinpath)
    if missing:
        is_there = os.path.lexists(missing[0])
        what = "not regular files, but pipes, devices, folders or broken links" if is_there else "missing"
        remedy = (
            f"see {info.url}" if info.url else "replace them by images, or remove them" if is_there else "put them back"
        )
        few = f"{len(missing):,} of {len(files):,} images are {what}, the first {missing[0]}; {remedy}"
        none = f"{info.title} has its lists but no images: put them at {files[0]} and so on; {remedy}"
        raise MissingImages(none if len(missing) == len(files) and info.url else few, samples_read, missing)
    return samples_read


def of_files(info: Description, files: Sequence[ImageFile], table: ImageTable, image_size: int | None) -> Samples:
    """Return the Samples of a table; `files` are its images, in the order of its rows."""

    def image(index: int) -> Pixels:
        return thumbnail(files[index])

    return Samples(
        inputs=StoredImages(files, image_size or IMAGE_SIZE),
        labels=table.labels,
        class_names=table.class_names,
        train_classes=table.train_classes,
        official_train=table.official_train,
        gallery=table.gallery,
        keys=table.paths,
        files=files,
        image=image,
        notes=published_counts.deviations(info.name, table.labels, table.train_classes, table.gallery) + table.notes,
    )


def _missing(folder: Path, paths: Sequence[str]) -> tuple[str, ...]:
    """Return the paths that are not files in `folder`; list each directory once, because a stat per file is slow."""
    parts = [path.rpartition("/") for path in paths]
    names = {place: _files_in(folder / place) for place in {place for place, _, _ in parts}}
    return tuple(path for path, (place, _, name) in zip(paths, parts, strict=True) if name not in names[place])


def _files_in(folder: Path) -> set[str]:
    try:
        with os.scandir(folder) as entries:
            return {entry.name for entry in entries if entry.is_file()}
    except (FileNotFoundError, NotADirectoryError):
        return set()


def folders_in(folder: Path) -> list[Path]:
    """Return the subfolders of `folder`, sorted by name, except hidden ones and those that macOS adds to archives."""
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith((".", "__MACOSX")))


def images_in(folder: Path) -> list[Path]:
    """Return the image files directly in `folder`, sorted by name, except hidden ones such as `._*` files of macOS."""
    names = sorted(name for name in os.listdir(folder) if name.lower().endswith(SUFFIXES) and not name.startswith("."))
    return [path for path in (folder / name for name in names) if path.is_file()]
