"""Roles of columns in an embedding set: label, identifier, image and split, and conversion of their values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from dmlcore.data.dataset import DataError
from dmlcore.data.embedding_sets.label_guess import describe_guess, guess_label
from dmlcore.data.embedding_sets.source import listed, shown
from dmlcore.typing import Bools, Ints

if TYPE_CHECKING:
    import pyarrow as pa

USUAL_NAMES = {
    "label": ("label", "labels", "class", "class_name", "category", "target", "y"),
    "split": ("split", "subset", "fold"),
    "image": ("image", "image_path", "path", "file", "filename", "img"),
    "id": ("id", "ids", "key", "uuid", "sku", "filename", "file", "name"),
}
MAX_CLASSES = 2**22
NO_LABEL = "no label"  # name of the only class of a set without labels
_SPLITS = {
    **{"train": "train", "training": "train"},
    **{"validation": "validation", "val": "validation", "valid": "validation"},
    **{"test": "test", "query": "test"},
}


@dataclass(frozen=True)
class Roles:
    """Names of the columns with labels, identifiers, image paths and splits; None if there is no such column."""

    label: str | None = None
    id: str | None = None
    image: str | None = None
    split: str | None = None

    @classmethod
    def guess(cls, columns: pa.Table) -> Roles:
        """Find the columns by their usual names, ignoring case, such as "category" for labels or "sku" for ids.

        If no column has a usual name for labels, the only one that looks like labels is used, see `guess_label`. Tell
        the user about it: `guess_notes`.
        """
        by_name: dict[str, str] = {}
        for name in columns.column_names:
            by_name.setdefault(name.strip().lower(), name)
        roles: dict[str, str] = {}
        for role, names in USUAL_NAMES.items():
            free = [by_name[name] for name in names if name in by_name and by_name[name] not in roles.values()]
            roles |= {role: free[0]} if free else {}
        if "label" not in roles and (label := guess_label(columns, roles.values())) is not None:
            roles["label"] = label
        return cls(**roles)

    def guess_notes(self, columns: pa.Table) -> tuple[str, ...]:
        """Return a note if the column with the labels was guessed from its values; () otherwise."""
        if self.label is None or self.label.strip().lower() in USUAL_NAMES["label"]:
            return ()
        return (describe_guess(columns, self.label),)

    def require(self, columns: pa.Table, source: str) -> None:
        """Raise DataError if a named column does not exist."""
        for field in fields(self):
            name = getattr(self, field.name)
            if name is not None and name not in columns.column_names:
                raise DataError(
                    f"{source} has no column {shown(name)} for the {field.name}; it has {listed(columns.column_names)}"
                )


class ClassDivision(NamedTuple):
    """Class numbers and division of an embedding set.

    Attributes:
        labels: Class numbers (N,) in 0..C-1.
        names: Class names, by number.
        train_classes: Number of training classes of the class-disjoint split, which have the first numbers.
        is_train: (N,) bool mask of the training samples of an image-wise split; None if there is none.
        split: "classes" or "samples" if a column defines the split, else "".
        notes: Messages for the user.
    """

    labels: Ints
    names: tuple[str, ...]
    train_classes: int
    is_train: Bools | None
    split: Literal["classes", "samples", ""]
    notes: tuple[str, ...]


def classes_of(columns: pa.Table, roles: Roles, rows: int, source: str) -> ClassDivision:
    """Return class numbers and split of all rows.

    Classes are sorted by name, whole numbers by value; if train and test share no class, the training classes come
    first. Without labels, all rows have the class NO_LABEL.

    Raises:
        DataError: If a label or split is missing or has an unknown value; the message names the first such row.
    """
    if roles.label is None:
        labels, names = np.zeros(rows, np.int64), [NO_LABEL]
    else:
        labels, names = _labels(columns.column(roles.label), f"{source}, column {roles.label}")
    if roles.split is None or roles.label is None:
        unused = (f"column {roles.split} is not used, because there are no labels",) if roles.split else ()
        return ClassDivision(labels, tuple(names), len(names) // 2, None, "", unused)
    return _divided(
        labels, names, roles.split, splits_of(columns.column(roles.split), f"{source}, column {roles.split}")
    )


def _divided(labels: Ints, names: list[str], column: str, splits: Sequence[str]) -> ClassDivision:
    is_validation = np.array([split == "validation" for split in splits])
    is_train = np.array([split == "train" for split in splits]) | is_validation
    notes = []
    if is_validation.any():
        notes.append(
            f"column {column}: rows of the validation split ({int(is_validation.sum()):,}) belong to the training "
            "side, of which validation samples are held out anyway"
        )
    if is_train.all() or not is_train.any():
        side = "train" if is_train.all() else "test"
        notes.append(f"column {column} is not used, because all rows are {side}; the first half of the classes trains")
        return ClassDivision(labels, tuple(names), len(names) // 2, None, "", tuple(notes))
    trained, tested = (set(np.unique(labels[side]).tolist()) for side in (is_train, ~is_train))
    if trained & tested:
        notes.append(
            f"column {column}: used as the image-wise split, because train and test share {len(trained & tested):,} "
            "classes; by classes, the first half trains"
        )
        return ClassDivision(labels, tuple(names), len(names) // 2, is_train, "samples", tuple(notes))
    notes.append(f"column {column}: used as the class-disjoint split, because train and test share no class")
    held_out = trained - set(np.unique(labels[is_train & ~is_validation]).tolist())
    order = [*sorted(trained - held_out), *sorted(held_out), *sorted(tested)]
    number = np.empty(len(names), np.int64)
    number[order] = np.arange(len(names))
    return ClassDivision(number[labels], tuple(names[at] for at in order), len(trained), None, "classes", tuple(notes))


def _labels(column: pa.ChunkedArray, label: str) -> tuple[Ints, list[str]]:
    """Return class numbers and names from a column of text, whole numbers or true/false values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    kind = column.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if not (is_text or is_number or pa.types.is_boolean(kind)):
        raise DataError(f"{label} has the type {kind}; labels are text, whole numbers or true/false values")
    encoded = pc.dictionary_encode(column.combine_chunks())
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    values: list[Any] = encoded.dictionary.to_pylist()
    numbers = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    if (numbers < 0).any():
        raise _unlabelled(label, int((numbers < 0).argmax()))
    for at, value in enumerate(values):
        row = int((numbers == at).argmax()) + 1 if _is_bad(value) else 0
        if row and (value != value or isinstance(value, str)):  # NaN, or blank text
            raise _unlabelled(label, row - 1)
        if row:
            raise DataError(f"{label}, row {row:,}: {shown(value)} is not a whole number; labels are text or integers")
    if len(values) > MAX_CLASSES:
        raise DataError(f"{label} has {len(values):,} classes, the limit is {MAX_CLASSES:,}; choose another column")
    values = [int(value) if isinstance(value, float) else value for value in values]
    order = sorted(range(len(values)), key=values.__getitem__)
    rank = np.empty(len(values), np.int64)
    rank[order] = np.arange(len(values))
    return rank[numbers], [str(values[at]) for at in order]


def _is_bad(value: Any) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return isinstance(value, float) and not (math.isfinite(value) and value.is_integer())


def _unlabelled(label: str, row: int) -> DataError:
    return DataError(f"{label}, row {row + 1:,} has no label; give every row a label, or leave the column out")


def splits_of(column: pa.ChunkedArray, label: str) -> list[str]:
    """Return "train", "validation" or "test" for each row; raise DataError for any other value."""
    splits: list[str] = []
    for row, value in enumerate(column.to_pylist(), start=1):
        split = _SPLITS.get(value.strip().lower()) if isinstance(value, str) else None
        if split is None:
            raise DataError(
                f"{label}, row {row:,}: {'empty' if value is None else shown(value)} is not a split; use train, "
                "validation or test, or leave the column out"
            )
        splits.append(split)
    return splits


def ids_of(columns: pa.Table, roles: Roles, source: str) -> list[str] | None:
    """Return the identifiers as text, or None without such a column; raise DataError if one is missing or repeated."""
    if roles.id is None:
        return None
    label = f"{source}, column {roles.id}"
    rows: dict[str, int] = {}
    ids = ["" if value is None else str(value) for value in columns.column(roles.id).to_pylist()]
    for row, name in enumerate(ids, start=1):
        if not name.strip():
            raise DataError(f"{label}, row {row:,} is empty; give every row an id, or leave the column out")
        if name in rows:
            raise DataError(f"{label}: rows {rows[name]:,} and {row:,} both have the id {shown(name)}; make ids unique")
        rows[name] = row
    return ids
