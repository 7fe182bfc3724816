"""Reading of stored embedding sets, whose files may come from another user and are checked before use."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dmlcore.data.dataset import DataError, LazySequence
from dmlcore.data.embedding_sets import folder as layout
from dmlcore.data.embedding_sets.images import require_inside
from dmlcore.data.embedding_sets.raw import RawArray, read_npy
from dmlcore.data.embedding_sets.roles import MAX_CLASSES, Roles, classes_of
from dmlcore.data.embedding_sets.source import source_file
from dmlcore.data.embedding_sets.table import MAX_DIMENSIONS, MAX_ROWS
from dmlcore.data.printable import printable
from dmlcore.storage import atomic_files
from dmlcore.typing import Array, Bools, Ints

if TYPE_CHECKING:
    import pyarrow as pa

MAX_ABOUT = 2**28  # bytes of set.json; 4 million class names take about 100 million


class _About(BaseModel):
    """Contents of set.json; unknown keys, written by newer releases, are ignored."""

    model_config = ConfigDict(strict=False, extra="ignore")

    version: int
    name: str = Field(max_length=layout.MAX_NAME)
    source: str = Field(max_length=layout.MAX_NAME)
    samples: int = Field(ge=1, le=MAX_ROWS)
    dimensions: int = Field(ge=1, le=MAX_DIMENSIONS)
    labelled: bool
    split: str
    images: int = Field(ge=0)
    notes: tuple[str, ...]
    roles: Roles
    train_classes: int = Field(ge=0)
    image_folder: str | None
    class_names: tuple[str, ...] = Field(min_length=1, max_length=MAX_CLASSES)


@dataclass(frozen=True, eq=False)
class EmbeddingSet:
    """A stored embedding set.

    Attributes:
        name: Name of the set.
        source: Name of the file that it was imported from.
        vectors: Embeddings (N, D), float16 or float32, memory-mapped and read-only.
        labels: Class numbers (N,) int64 in 0..C-1.
        class_names: Names of the classes.
        columns: The other columns of the imported files, N rows.
        roles: Columns with labels, identifiers, image paths and splits.
        images: Path of each image; None for a set without images.
        labelled: False if all samples have the same placeholder class, because labels are missing.
        train_classes: Number of training classes of the class-disjoint split.
        official_train: (N,) bool mask of the training samples of the image-wise split, if a column defines one.
        split: "classes" or "samples" if a column defines the split, else "".
        notes: Messages from the import.
    """

    name: str
    source: str
    vectors: Array
    labels: Ints
    class_names: tuple[str, ...]
    columns: pa.Table
    roles: Roles
    images: Sequence[Path] | None
    labelled: bool
    train_classes: int
    official_train: Bools | None
    split: str
    notes: tuple[str, ...]

    @property
    def ids(self) -> list[str] | None:
        """Identifiers of the samples, or None if no column holds them."""
        if self.roles.id is None:
            return None
        return [str(value) for value in self.columns.column(self.roles.id).to_pylist()]


def load(folder: Path) -> EmbeddingSet:
    """Open a stored embedding set; vectors are mapped, not read.

    Raises:
        DataError: If a file is missing or damaged, or the files do not fit each other.
    """
    about = _about(folder)
    vectors = _mapped(folder / layout.VECTORS, (about.samples, about.dimensions))
    labels = _labels(folder / layout.LABELS, about)
    columns = _columns(folder / layout.COLUMNS, about.samples)
    about.roles.require(columns, str(folder))
    official = None
    if about.split == "samples":
        official = classes_of(columns, about.roles, about.samples, str(folder)).is_train
        if official is None:
            raise _damaged(folder, "the column of splits does not divide the samples")
    return EmbeddingSet(
        name=printable(about.name),
        source=printable(about.source),
        vectors=vectors,
        labels=labels,
        class_names=about.class_names,
        columns=columns,
        roles=about.roles,
        images=_images(folder, about) if about.images else None,
        labelled=about.labelled,
        train_classes=about.train_classes,
        official_train=official,
        split=about.split,
        notes=tuple(map(printable, about.notes)),
    )


def _about(folder: Path) -> _About:
    try:
        about = _About.model_validate(atomic_files.read_json(folder / layout.ABOUT, MAX_ABOUT))
    except OSError as error:
        raise DataError(
            f"{folder} is not an embedding set: {layout.ABOUT} cannot be read ({error.strerror}); give the folder that "
            "an import has written"
        ) from None
    except (ValidationError, ValueError) as error:
        fault = error.errors()[0] if isinstance(error, ValidationError) else {"msg": str(error), "loc": ()}
        where = ".".join(map(str, fault["loc"]))
        raise _damaged(folder, printable(f"{layout.ABOUT}: {where} {fault['msg']}", 200)) from None
    if about.version > layout.VERSION:
        raise DataError(
            f"{folder} was written by a newer release (version {about.version} of the format, this one reads "
            f"{layout.VERSION}); update DML Lab"
        )
    if about.train_classes > len(about.class_names) or about.images not in (0, about.samples):
        raise _damaged(folder, f"the numbers in {layout.ABOUT} do not fit each other")
    return about


def _raw(path: Path, shape: tuple[int, ...], kinds: tuple[np.dtype[Any], ...]) -> RawArray:
    array = read_npy(source_file(path))
    if array.shape != shape or array.dtype not in kinds or array.fortran:
        size = " x ".join(map(str, array.shape))
        raise _damaged(path.parent, f"{path.name} has {size} values of type {array.dtype}")
    return array


def _mapped(path: Path, shape: tuple[int, int]) -> Array:
    array = _raw(path, shape, (np.dtype("<f2"), np.dtype("<f4")))
    mapped = np.memmap(path, array.dtype, "r", array.offset, shape)
    return mapped.view(np.ndarray)


def _labels(path: Path, about: _About) -> Ints:
    values: Ints = _raw(path, (about.samples,), (np.dtype("<i8"),)).values()
    if not 0 <= values.min() <= values.max() < len(about.class_names):
        raise _damaged(path.parent, f"{path.name} has labels outside 0 to {len(about.class_names) - 1:,}")
    return values


def _columns(path: Path, rows: int) -> pa.Table:
    from dmlcore.data.embedding_sets.parquet import read_parquet_columns

    table, _ = read_parquet_columns(source_file(path))
    if table.num_columns and table.num_rows != rows:
        raise _damaged(path.parent, f"{path.name} has {table.num_rows:,} rows instead of {rows:,}")
    return table


def _images(folder: Path, about: _About) -> Sequence[Path]:
    table = _columns(folder / layout.IMAGES, about.samples)
    if table.column_names != ["path"]:
        raise _damaged(folder, f"{layout.IMAGES} has no column path")
    paths = [str(path) for path in table.column("path").to_pylist()]
    for row, path in enumerate(paths, start=1):
        require_inside(path, row)
    if about.image_folder is not None and not os.path.isabs(about.image_folder):
        raise _damaged(folder, "the folder of the images is not an absolute path")
    base = Path(about.image_folder) if about.image_folder else folder / layout.COPIES
    return LazySequence(paths, base.joinpath)


def _damaged(folder: Path, fault: str) -> DataError:
    return DataError(f"the embedding set {folder} is damaged: {fault}; import it again")
