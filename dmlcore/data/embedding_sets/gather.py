"""Assembly of an embedding set from the objects of a Python session: embeddings, labels, images and metadata."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image

from dmlcore.data.dataset import DataError
from dmlcore.data.embedding_sets import files, memory
from dmlcore.data.embedding_sets.roles import Roles, ids_of, splits_of
from dmlcore.data.embedding_sets.source import listed, shown
from dmlcore.data.embedding_sets.table import VectorTable
from dmlcore.typing import Array

LABEL, IMAGE = "label", "image"  # names of the columns that hold labels and image paths given as separate objects


@dataclass(frozen=True)
class GatheredSet:
    """Input of `dmlcore.experiments.embedding_sets.create`.

    Attributes:
        table: Embeddings and columns.
        roles: Columns with labels, ids, image paths and splits.
        images: Folder of the images; None if there are none.
        copy_images: True if the images are in the scratch folder and must be copied.
        guesses: Notes on columns that were guessed from their values, for the user.
    """

    table: VectorTable
    roles: Roles
    images: Path | None
    copy_images: bool
    guesses: tuple[str, ...] = ()


def gather(
    embeddings: Any,
    labels: Any = None,
    images: Any = None,
    metadata: Any = None,
    *,
    vectors: str | None = None,
    scratch: Path,
) -> GatheredSet:
    """Combine embeddings, labels, images and metadata of N samples in the same order.

    Args:
        embeddings: Array, tensor, list of lists or data frame of numbers (N, D); a data frame or Arrow table with one
            column of vectors; or a file that `files.read` accepts.
        labels: N labels (list, array, tensor or series), the name of a column, or a file that `files.read_columns`
            accepts; None uses a column with a usual name, such as "label" or "class", if there is one.
        images: Folder of images; N paths; the name of a column with paths; N images as an array (N, H, W, 3) or
            (N, H, W) of uint8; or a list of N PIL images.
        metadata: Further columns: data frame, Arrow table, or mapping of names to N values.
        vectors: Column of a data frame, or array of a file, that holds the vectors; None chooses the only candidate.
        scratch: Empty folder that receives images given as arrays; needed until the set is created.

    Raises:
        DataError: If shapes, types or numbers of rows do not fit, or a named column does not exist.
    """
    table = _embeddings(embeddings, vectors)
    if metadata is not None:
        columns, notes = memory.as_columns(metadata, "metadata")
        table = table.with_columns(columns, "metadata").with_notes(notes)
    table, label, guesses = _labels(table, labels)
    folder, column = _images(table, images, scratch)
    image = None
    if column is not None:
        table, image = _appended(table, IMAGE, column, "images")
    table, roles = _guessed(table)
    if label is None:
        guesses = roles.guess_notes(table.columns)
    roles = replace(roles, label=label or roles.label, image=image or roles.image)
    return GatheredSet(table.with_notes(guesses), roles, folder, copy_images=folder == scratch, guesses=guesses)


def _embeddings(embeddings: Any, vectors: str | None) -> VectorTable:
    """Return a table of the embeddings, with the other columns if they come from a data frame or a file."""
    if isinstance(embeddings, str | Path):
        return files.read(embeddings, vectors=vectors)
    if vectors is not None or isinstance(embeddings, pa.Table) or _has_column_of_vectors(embeddings):
        return memory.from_arrays(vectors, embeddings, "embeddings")
    return memory.from_arrays(embeddings, source="embeddings")


def _is_frame(value: Any) -> bool:
    return hasattr(value, "columns") and hasattr(value, "to_dict")


def _has_column_of_vectors(frame: Any) -> bool:
    """Return True for a data frame in which a column holds one vector per row."""
    if not _is_frame(frame) or not len(frame):
        return False
    return any(isinstance(frame[name].iloc[0], np.ndarray | list | tuple) for name in frame.columns)


def _labels(table: VectorTable, labels: Any) -> tuple[VectorTable, str | None, tuple[str, ...]]:
    """Add given labels to the table.

    Returns:
        The table, the name of the column with the labels, if it is known, and a note if it was guessed.
    """
    if labels is None:
        return table, None, ()
    if isinstance(labels, str) and labels in table.columns.column_names:
        return table, labels, ()
    if isinstance(labels, str | Path):
        if not Path(labels).is_file():
            raise DataError(
                f"labels: {shown(str(labels))} is neither a column nor a file; the columns are "
                f"{listed(table.columns.column_names) or 'none'}"
            )
        columns = files.read_columns(labels)
        roles, several = Roles.guess(columns), columns.num_columns > 1
        if roles.label is None and several:
            raise DataError(
                f"labels: {Path(labels).name} has no column with a usual name, such as label or class; it has "
                f"{listed(columns.column_names)}. Rename the column, or read the file and give one column"
            )
        table = table.with_columns(columns, Path(labels).name)
        return table, roles.label or columns.column_names[0], roles.guess_notes(columns) if several else ()
    return *_appended(table, LABEL, labels, "labels"), ()


def _appended(table: VectorTable, name: str, values: Any, source: str) -> tuple[VectorTable, str]:
    """Add a column; return the table and the name of the column, which is numbered if `name` is taken."""
    taken, free = table.columns.column_names, name
    while free in taken:
        free = f"{name} {int(free.rpartition(' ')[2]) + 1 if free != name else 2}"
    columns, notes = memory.as_columns({free: values}, source)
    return table.with_columns(columns, source).with_notes(notes), free


def _guessed(table: VectorTable) -> tuple[VectorTable, Roles]:
    """Guess the roles of columns by name; columns of ids and splits with unsuitable values remain metadata."""
    roles = Roles.guess(table.columns)
    notes = []
    try:
        ids_of(table.columns, roles, table.source)
    except DataError as error:
        notes.append(f"not used as ids: {error}")
        roles = replace(roles, id=None)
    if roles.split is not None:
        try:
            splits_of(table.columns.column(roles.split), f"{table.source}, column {roles.split}")
        except DataError as error:
            notes.append(f"not used as split: {error}")
            roles = replace(roles, split=None)
    return table.with_notes(notes), roles


def _images(table: VectorTable, images: Any, scratch: Path) -> tuple[Path | None, list[str] | None]:
    """Return the folder of the images, and the path of each image in it if the images were not given as a folder."""
    if images is None:
        return None, None
    if isinstance(images, str) and images in table.columns.column_names:
        return _common_folder(table.columns.column(images).to_pylist())
    if isinstance(images, str | Path):
        return Path(images).expanduser(), None
    if hasattr(images, "detach"):
        images = images.detach().cpu().numpy()
    rows = table.vectors.shape[0]
    if len(images) != rows:
        raise DataError(f"images: {len(images):,} images were given for {rows:,} vectors; give one image per vector")
    if all(isinstance(image, str | os.PathLike) for image in images):
        return _common_folder(list(images))
    return scratch, _stored(images, scratch)


def _common_folder(paths: Sequence[Any]) -> tuple[Path, list[str]]:
    """Return the deepest folder that contains all files, and the paths relative to it."""
    for row, path in enumerate(paths, start=1):
        if not isinstance(path, str | os.PathLike) or not str(path).strip():
            raise DataError(f"images, row {row:,}: {shown(str(path))} is not a path; give one image file per vector")
    absolute = [os.path.abspath(os.path.expanduser(path)) for path in paths]
    folder = os.path.commonpath([os.path.dirname(path) for path in absolute])
    return Path(folder), [os.path.relpath(path, folder) for path in absolute]


def _stored(images: Any, folder: Path) -> list[str]:
    """Write images given as arrays or PIL images as PNG files into `folder`; return their names."""
    names = []
    for row, image in enumerate(images):
        names.append(f"{row:07d}.png")
        _as_image(image, row + 1).save(folder / names[-1])
    return names


def _as_image(image: Any, row: int) -> Image.Image:
    if isinstance(image, Image.Image):
        return image.convert("RGB")
    pixels: Array = np.asarray(image)
    if pixels.ndim == 3 and pixels.shape[0] in (1, 3) and pixels.shape[2] not in (1, 3):
        pixels = pixels.transpose(1, 2, 0)  # channels first, as torch stores images
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[:, :, 0]
    if pixels.dtype != np.uint8 or not (pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] == 3)):
        raise DataError(
            f"images, row {row:,}: an array {' x '.join(map(str, pixels.shape)) or 'without axes'} of type "
            f"{pixels.dtype}; give arrays (N, H, W, 3) or (N, H, W) of type uint8 with values 0 to 255"
        )
    if not pixels.size:
        raise DataError(f"images, row {row:,}: the array has no pixels; give at least one")
    return Image.fromarray(np.ascontiguousarray(pixels))
