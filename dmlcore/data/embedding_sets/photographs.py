"""Photographs in a folder, with path, label and split from the folder names, or with the columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dmlcore.data.dataset import DataError
from dmlcore.data.embedding_sets import files
from dmlcore.data.embedding_sets import images as image_files
from dmlcore.data.embedding_sets.roles import USUAL_NAMES, Roles, classes_of, ids_of
from dmlcore.data.embedding_sets.source import listed
from dmlcore.data.files.images import SUFFIXES
from dmlcore.data.printable import encodable
from dmlcore.data.readers import image_folder

if TYPE_CHECKING:
    import pyarrow as pa

IMAGE, LABEL, SPLIT = "image", "label", "split"  # names of the columns made from folders


@dataclass(frozen=True, eq=False)
class Photographs:
    """Photographs and their columns, N rows.

    Attributes:
        folder: Folder that contains all photographs.
        paths: Paths relative to `folder`.
        columns: Columns with N rows.
        roles: Columns with labels, ids, image paths and splits.
        notes: Messages for the user.
    """

    folder: Path
    paths: Sequence[str]
    columns: pa.Table
    roles: Roles
    notes: tuple[str, ...]


def list_folder(folder: Path) -> Photographs:
    """List the photographs in and below a folder, sorted by path; the path of each is its id.

    If all of them are in class folders (see `dmlcore.data.readers.image_folder`), these give the labels, and folders
    such as train/ and test/ above them give the split. Otherwise there are no labels.

    Raises:
        DataError: There are no photographs, or too many folders.
    """
    import pyarrow as pa

    present = sorted(image_files.images_below(_folder(folder)))
    paths = [path for path in present if encodable(path) == path and "\\" not in path]
    if not paths:
        raise DataError(f"{folder} contains no photographs; give a folder with {', '.join(SUFFIXES)} files")
    notes: list[str] = []
    if left := len(present) - len(paths):
        notes.append(f"{left:,} photographs were left out, because their names contain a backslash or are not UTF-8")
    labels = _class_folders(folder, paths, notes)
    columns = {IMAGE: pa.array(paths, pa.string())}
    roles = Roles(id=IMAGE, image=IMAGE)
    if labels is not None:
        columns[LABEL], roles = pa.array(labels, pa.string()), replace(roles, label=LABEL)
        if splits := _splits(folder, paths):
            columns[SPLIT], roles = pa.array(splits, pa.string()), replace(roles, split=SPLIT)
    return Photographs(folder, paths, pa.table(columns), roles, tuple(notes))


def list_table(folder: Path, table: Path, label: str | None = None, roots: Sequence[Path] = ()) -> Photographs:
    """List the photographs that a table names, in its order, with all its columns.

    Args:
        folder: Folder of the photographs.
        table: File with one row per photograph, see `files.read_columns`. A column with a usual name, such as "image",
            "filename" or "id", names the files.
        label: Column with the labels; by default one with a usual name, if there is one.
        roots: Folders below which absolute paths are accepted.

    Raises:
        DataError: A column, a label, an id or a file is missing or unusable; the message names the row.
    """
    import pyarrow as pa

    columns = files.read_columns(table)
    roles = Roles.guess(columns)
    notes = list(roles.guess_notes(columns)) if label is None else []
    roles = roles if label is None else replace(roles, label=label)
    roles.require(columns, table.name)
    if roles.image is None and roles.id is None:
        known_names = ", ".join(dict.fromkeys(USUAL_NAMES["image"] + USUAL_NAMES["id"]))
        raise DataError(
            f"{table.name} has no column that names the photographs; rename one of its columns "
            f"({listed(columns.column_names)}) to one of {known_names}"
        )
    if roles.label is None:
        known_names = ", ".join(USUAL_NAMES["label"])
        notes.append(f"{table.name} has no column of labels; choose one, or rename it to one of {known_names}")
    ids = ids_of(columns, roles, table.name)
    classes_of(columns, roles, columns.num_rows, table.name)  # refuses unusable labels before anything is computed
    place, paths = _placed(_folder(folder), columns, roles, ids, roots)
    column = pa.array(paths, pa.string())
    if roles.image is None:
        columns, roles = columns.append_column(IMAGE, column), replace(roles, image=IMAGE)
    else:
        at = columns.column_names.index(roles.image)
        columns = columns.set_column(at, roles.image, column)
    if roles.id is None and len(set(paths)) == len(paths):
        roles = replace(roles, id=roles.image)
    return Photographs(place, paths, columns, roles, tuple(notes))


def _placed(
    folder: Path, columns: pa.Table, roles: Roles, ids: Sequence[str] | None, roots: Sequence[Path]
) -> tuple[Path, list[str]]:
    """Return a folder that contains the photographs that the columns name, and their paths relative to it."""
    named = roles.image or roles.id
    assert named is not None
    values = [None if value is None else str(value) for value in columns.column(named).to_pylist()]
    if roots and image_files.are_absolute(values):
        return image_files.find(folder, values, roots)
    if roles.image is not None:
        return folder, image_files.assign(folder, len(values), values, ids)
    return folder, image_files.require_named(folder, ids or [])


def _folder(folder: Path) -> Path:
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder; give a folder of photographs")
    return folder


def _class_folders(folder: Path, paths: Sequence[str], notes: list[str]) -> list[str] | None:
    """Return the class folder of each photograph; None, with a note if some have one, unless all of them have one."""
    try:
        table = image_folder.read_table(folder)
    except DataError:  # fewer than two class folders
        return None
    names = {path: table.class_names[label] for path, label in zip(table.paths, table.labels, strict=True)}
    without = [path for path in paths if path not in names]
    if without:
        notes.append(
            f"no labels: {len(without):,} photographs are not in class folders, such as {without[0]}; move them into "
            "folders, or give a table of labels"
        )
        return None
    return [names[path] for path in paths]


def _splits(folder: Path, paths: Sequence[str]) -> list[str]:
    """Return "train", "test" or "validation" for each path; [] unless folders with these names contain the classes."""
    names = {f"{split.relative_to(folder).as_posix()}/": split.name.lower() for split in image_folder.splits(folder)}
    return [next(name for start, name in names.items() if path.startswith(start)) for path in paths] if names else []
