"""Embedding sets on disk: writing a checked set into a folder, and reading it back.

A set is a folder with `vectors.npy` (float16 or float32), `labels.npy` (int64), `columns.parquet` (ids, labels, splits
and metadata as given), `set.json`, and, for a set with images, `images.parquet` with the path of each image.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.lib import format as npy

from dmlcore.data.dataset import DataError
from dmlcore.data.embedding_sets import images as image_files
from dmlcore.data.embedding_sets.roles import ClassDivision, Roles, classes_of, ids_of
from dmlcore.data.embedding_sets.table import VectorTable
from dmlcore.data.printable import printable

if TYPE_CHECKING:
    import pyarrow as pa

VERSION = 1
VECTORS, LABELS, COLUMNS, IMAGES, ABOUT = "vectors.npy", "labels.npy", "columns.parquet", "images.parquet", "set.json"
COPIES = "images"  # folder of copied images in the folder of a set
MAX_NAME = 200
BLOCK_BYTES = 2**23  # bytes of vectors that are read, checked and written at a time


@dataclass(frozen=True)
class SetSummary:
    """Contents of a stored embedding set.

    Attributes:
        name: Name of the set.
        source: Name of the file that it was imported from.
        samples: Number of samples N.
        dimensions: Number of dimensions D.
        dtype: "float16" or "float32".
        classes: Number of classes.
        labelled: False if all samples have the same placeholder class, because labels are missing.
        split: "classes" or "samples" if a column defines the split, else "".
        images: Number of samples with an image: N or 0.
        notes: Messages for the user.
    """

    name: str
    source: str
    samples: int
    dimensions: int
    dtype: str
    classes: int
    labelled: bool
    split: Literal["classes", "samples", ""]
    images: int
    notes: tuple[str, ...]


def write(
    folder: Path,
    table: VectorTable,
    roles: Roles,
    *,
    images: Path | None = None,
    name: str = "",
    copy: bool = False,
    image_roots: Sequence[Path] = (),
) -> SetSummary:
    """Write an embedding set into an existing empty folder; vectors are checked and written in chunks.

    The caller makes the folder appear atomically, for example by renaming it, and removes it after an error.

    Args:
        folder: Empty folder.
        table: Embeddings and other columns. float64 vectors are stored as float32.
        roles: Columns with labels, identifiers, image paths and splits.
        images: Folder of the images; None for a set without images.
        name: Name of the set; by default that of the source.
        copy: Copy the images into the set instead of referring to them.
        image_roots: Folders below which absolute paths in the image column are accepted. With them, `images` may be
            None; if files are then missing, the set has no images and a note says so.

    Raises:
        DataError: If a vector, label, identifier, split or image is unusable; the message names the row.
    """
    if os.listdir(folder):
        raise DataError(f"{folder} is not empty; give a new folder")
    roles.require(table.columns, table.source)
    rows, dimensions = table.vectors.shape
    classes = classes_of(table.columns, roles, rows, table.source)
    ids = ids_of(table.columns, roles, table.source)
    images, paths, notes = _images(images, table.columns, roles, ids, rows, image_roots)
    with _writing(folder / VECTORS) as file:
        dtype = _write_vectors(file, table)
    with _writing(folder / LABELS) as file:
        npy.write_array(file, classes.labels, allow_pickle=False)
    _write_parquet(folder / COLUMNS, table.columns)
    if images is not None and paths is not None:
        import pyarrow as pa

        if copy:
            image_files.copy(images, paths, folder / COPIES)
        _write_parquet(folder / IMAGES, pa.table({"path": pa.array(paths, pa.string())}))
    summary = SetSummary(
        name=printable(name or table.source, MAX_NAME),
        source=printable(table.source, MAX_NAME),
        samples=rows,
        dimensions=dimensions,
        dtype=dtype.name,
        classes=len(classes.names),
        labelled=roles.label is not None,
        split=classes.split,
        images=len(paths or ()),
        notes=tuple(map(printable, (*table.notes, *classes.notes, *notes))),
    )
    _write_about(folder, summary, roles, classes, None if images is None or copy else images)
    return summary


def _images(
    images: Path | None,
    columns: pa.Table,
    roles: Roles,
    ids: Sequence[str] | None,
    rows: int,
    roots: Sequence[Path],
) -> tuple[Path | None, list[str] | None, tuple[str, ...]]:
    """Return the folder of the images, their paths relative to it, and notes; None and None if there are no images."""
    if roles.image is None:
        return images, None if images is None else image_files.assign(images, rows, None, ids), ()
    values = [None if value is None else str(value) for value in columns.column(roles.image).to_pylist()]
    if not roots or not image_files.are_absolute(values):
        return images, None if images is None else image_files.assign(images, rows, values, ids), ()
    try:
        return *image_files.find(images, values, roots), ()
    except DataError as error:
        if images is not None:
            raise
        return None, None, (f"column {roles.image}: the images are left out, because {error}",)


def _write_vectors(file: IO[bytes], table: VectorTable) -> np.dtype[Any]:
    """Write the vectors as a .npy file in C order and little-endian; return their dtype."""
    dtype = np.dtype("<f2" if table.vectors.dtype == np.float16 else "<f4")
    rows, dimensions = table.vectors.shape
    header = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": (rows, dimensions)}
    npy.write_array_header_1_0(file, header)
    for chunk in table.vectors.chunks(max(1, BLOCK_BYTES // (dimensions * table.vectors.dtype.itemsize))):
        file.write(np.ascontiguousarray(chunk, dtype).data)
    return dtype


def _write_parquet(path: Path, table: pa.Table) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _writing(path) as file:
        try:
            pq.write_table(table, file, compression="zstd")
        except (pa.ArrowException, TypeError) as error:
            raise DataError(f"the columns cannot be stored ({error}); remove the column that is named") from None


def _write_about(folder: Path, summary: SetSummary, roles: Roles, classes: ClassDivision, images: Path | None) -> None:
    about = {
        "version": VERSION,
        **asdict(summary),
        "roles": asdict(roles),
        "train_classes": classes.train_classes,
        "image_folder": None if images is None else str(images.absolute()),
        "class_names": list(classes.names),
    }
    with _writing(folder / ABOUT) as file:
        file.write((json.dumps(about, indent=1) + "\n").encode())


@contextmanager
def _writing(path: Path) -> Iterator[IO[bytes]]:
    """Return a context manager that creates a file and flushes it to disk; errors of the disk become DataError."""
    try:
        with path.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise DataError(
            f"{path} cannot be written ({error.strerror or error}); free space or choose another folder"
        ) from (error)
