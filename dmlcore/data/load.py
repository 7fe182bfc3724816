"""Loading of data sets by name: find the files, read them, and divide the samples into splits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from dmlcore.catalogue import discover
from dmlcore.data import splits
from dmlcore.data.class_folds import Folds
from dmlcore.data.damaged import leave_out
from dmlcore.data.dataset import (
    DATASETS,
    Damaged,
    DataError,
    Dataset,
    Description,
    Samples,
    Split,
    Validation,
)
from dmlcore.data.files import locate as folders
from dmlcore.data.shards.index import is_sharded
from dmlcore.data.shards.read import read_folder as read_shards

discover(
    "dmlcore.data.readers",
    "dmlcore.data.synthetic",
    first=(
        *("digits", "gaussians", "shapes", "tokens", "digits_images", "birds", "glyphs", "cifar10", "cifar100"),
        *("cifar_collage", "cub", "cars", "sop", "inshop", "aircraft", "flowers", "omniglot", "alphabet_collages"),
        *("image_folder", "embeddings"),
    ),
)

IMAGE_SIZES = (16, 512)  # minimum and maximum side of images in pixels


def names() -> list[str]:
    """Return the names of the registered data sets, the default data set first."""
    return list(DATASETS)


def describe(name: str) -> Description:
    """Return the metadata of the data set `name` (title, citation, kind, defaults) without reading a file."""
    if name not in DATASETS:
        raise DataError(f"unknown data set {name!r}; choose one of {', '.join(DATASETS)}")
    return DATASETS[name][0]


def available(name: str, root: Path | str | None = None) -> Path | None:
    """Return the folder or archive of data set `name`, "." if it needs no files, or None if it is not found."""
    info = describe(name)
    with _readable(info):
        return folders.find(info, _path(root)) if info.needs_files else Path()


def locate(name: str, root: Path | str | None = None) -> Path:
    """Return the folder of `name` in its official layout, unpacking a known archive into the cache if necessary.

    Args:
        name: The data set.
        root: The folder, its parent, an archive, or the folder of an archive; by default $DML_DATA and then data,
            ../data and ../shared/data of the repository are searched.

    Raises:
        DataError: If the data set is not found; the message lists the searched folders and what to download.
    """
    info = describe(name)
    with _readable(info):
        return folders.locate(info, _path(root)) if info.needs_files else Path()


def load(
    name: str,
    *,
    root: Path | str | None = None,
    split: Split | None = None,
    validation: Validation | None = None,
    folds: Folds | None = None,
    image_size: int | None = None,
    seed: int = 0,
    damaged: Damaged = "error",
) -> Dataset:
    """Read and split a data set; None as `split`, `validation` or `image_size` means the default in `describe(name)`.

    Args:
        name: The data set.
        root: Where to search, as in `locate`.
        split: "classes", "samples" or "none"; not allowed for a data set that defines its own splits.
        validation: "classes", "samples" or "none"; not allowed for a data set that defines its own splits.
        folds: Held-out fold of the training classes for validation; by default, the last quarter of the classes is held
            out.
        image_size: Side of the square images in pixels, 16 to 512.
        seed: Seed of sample-wise splits and of generated data.
        damaged: "skip" decodes every image once, leaves out those that fail and counts them in the notes; "error"
            raises DataError when a damaged image is accessed.

    Returns:
        The data set.

    Raises:
        DataError: If a file is missing or damaged, or if the split is not possible; the message names it.
    """
    _check_split(describe(name), folds, split=split, validation=validation)
    samples = read(name, root=root, image_size=image_size, seed=seed)
    if damaged == "skip":
        with _readable(describe(name)):
            samples = leave_out(samples)
    return divide(name, samples, split=split, validation=validation, folds=folds, seed=seed)


def read(name: str, *, root: Path | str | None = None, image_size: int | None = None, seed: int = 0) -> Samples:
    """Read a data set without splitting it; arguments and errors as for `load`."""
    info = describe(name)
    _check_image_size(info, image_size)
    with _readable(info):
        place = locate(name, root)
        if is_sharded(place):
            return read_shards(info, place, image_size or info.image_size)
        return DATASETS[name][1](place, image_size or info.image_size, seed)


def divide(
    name: str,
    samples: Samples,
    *,
    split: Split | None = None,
    validation: Validation | None = None,
    folds: Folds | None = None,
    seed: int = 0,
) -> Dataset:
    """Divide samples that `read` returned into splits; arguments and errors as for `load`."""
    info = describe(name)
    _check_split(info, folds, split=split, validation=validation)
    split, validation = split or info.split, validation or info.validation
    partition = splits.partition(samples, split, validation, seed, folds)
    for array in (samples.labels, *partition.values(), *samples.facts.values()):
        array.flags.writeable = False
    return Dataset(
        name=name,
        inputs=samples.inputs,
        labels=samples.labels,
        class_names=samples.class_names,
        splits=partition,
        image=samples.image,
        notes=samples.notes + _count(samples, partition),
        facts=samples.facts,
        keys=samples.keys,
        files=samples.files,
        settings=_settings(split, validation, folds, seed),
    )


def _settings(split: str, validation: str, folds: Folds | None, seed: int) -> dict[str, str | int]:
    settings: dict[str, str | int] = {"seed": seed, "split": split, "validation": validation}
    if folds:
        settings |= {"folds": folds.count, "fold": folds.number, "fold_order": folds.order, "fold_seed": folds.seed}
    return settings


@contextmanager
def _readable(info: Description) -> Iterator[None]:
    """Return a context manager that converts OSError, such as missing permissions, into DataError."""
    try:
        yield
    except OSError as error:
        raise DataError(f"{info.title} cannot be read: {error}; check the folder and its permissions") from error


def _path(root: Path | str | None) -> Path | None:
    if root is None:
        return None
    if "\0" in str(root):
        raise DataError("the name of the data folder must not contain a NUL character")
    try:
        return Path(root).expanduser()
    except RuntimeError:  # ~name of an unknown user
        raise DataError(f"{str(root)[:200]}: there is no such user on this machine; give the full path") from None


def _check_image_size(info: Description, image_size: int | None) -> None:
    if image_size in (None, info.image_size):
        return
    if not info.resizes:
        size = f"{info.image_size} pixels a side" if info.image_size else "no images"
        raise DataError(f"image_size cannot be changed for {info.name}, which has {size}; omit it, got {image_size}")
    low, high = IMAGE_SIZES
    if not isinstance(image_size, int) or not low <= image_size <= high:
        raise DataError(f"image_size must be a whole number of pixels from {low} to {high}, got {image_size!r}")


def _check_split(info: Description, folds: Folds | None, **asked: str | None) -> None:
    if folds and info.split == "own":
        raise DataError(f"folds cannot be used with {info.name}, which defines its own splits; omit it")
    for key, value in asked.items():
        if info.split == "own" and value not in (None, "own"):
            raise DataError(
                f"{key} cannot be set for {info.name}, which defines its own splits; omit it, got {value!r}"
            )
        if info.split != "own" and value == "own":
            raise DataError(f"{key} cannot be 'own' for {info.name}, which defines no splits; omit it")


def _count(samples: Samples, partition: dict[str, np.ndarray]) -> tuple[str, ...]:
    """Return notes on split sizes, on classes with a single sample, and on queries without a match in the gallery."""
    notes = []
    for name, rows in partition.items():
        _, sizes = np.unique(samples.labels[rows], return_counts=True)
        notes.append(f"{name}: {len(rows):,} samples of {len(sizes):,} classes")
        if "gallery" in partition and name in ("test", "gallery"):
            # with a gallery, single samples are no problem: a query finds its match there, not among the queries
            continue
        if singles := int((sizes == 1).sum()):
            notes.append(f"{name}: {singles:,} classes have a single sample, which cannot be retrieved")
    if "gallery" in partition:
        labels = samples.labels
        if lost := int((~np.isin(labels[partition["test"]], labels[partition["gallery"]])).sum()):
            notes.append(f"test: {lost:,} queries have no match, because their class is not in the gallery")
    return tuple(notes)
