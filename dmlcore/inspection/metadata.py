"""Metadata of samples, such as the columns of an embedding set, as text and as rows of a CSV file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dmlcore.data import Dataset
from dmlcore.data.printable import printable
from dmlcore.data.readers.embeddings import INFO
from dmlcore.storage.csv_text import as_csv
from dmlcore.typing import Array

MAX_NAME = 80  # maximum length of a column name in characters


class MetadataColumn(NamedTuple):
    """Metadata column: its printable name, and one text or number per sample of the data set, shape (N,)."""

    name: str
    values: Array


def columns(data: Dataset | None) -> list[MetadataColumn]:
    """Return the metadata columns of a data set, in the order of its file.

    These are all columns of an embedding set, and the texts that other readers attach to their samples. Numbers of
    other data sets are left out, because they refer to the internals of a generator.
    """
    if data is None:
        return []
    kinds = "Uifb" if data.name == INFO.name else "U"
    return [
        MetadataColumn(printable(name, MAX_NAME), values)
        for name, values in data.facts.items()
        if values.ndim == 1 and values.dtype.kind in kinds
    ]


def has_labels(data: Dataset) -> bool:
    """Return False if all samples have the same class, as in an embedding set without labels."""
    return len(data.class_names) > 1


def id_of(data: Dataset | None, index: int) -> str:
    """Return the identifier of a sample of an embedding set; "" if it has none."""
    if data is None or data.name != INFO.name or data.keys is None:
        return ""
    return str(data.keys[index])


def text_of(value: Any) -> str:
    """Return a metadata value as text; "" if it is missing."""
    if isinstance(value, str):
        return value
    if isinstance(value, float | np.floating):
        return "" if value != value else f"{value:.12g}"
    return str(value)


def describe(data: Dataset | None, index: int) -> list[tuple[str, str]]:
    """Return the names and values of the metadata of one sample as printable text, without missing values."""
    texts = [(name, printable(text_of(values[index]), 500)) for name, values in columns(data)]
    return [(name, text) for name, text in texts if text]


def samples_csv(data: Dataset, indices: ArrayLike, more: Mapping[str, Sequence[Any]] | None = None) -> str:
    """Return samples as CSV text, one line per sample.

    The columns are row (number of the sample in the data set, counted from 0), id, label (name of the class), image
    (path of the file), those of `more`, and the metadata. Columns that the data set does not have are left out.

    Args:
        data: Data set of the samples.
        indices: Sample indices (n,) in the data set, in the order of the lines.
        more: Further columns of n values, by name.
    """
    rows = np.asarray(indices, np.int64).tolist()
    table = sample_columns(data, rows) | dict(more or {})
    add_columns(table, data, rows)
    return as_csv([list(table), *zip(*table.values(), strict=True)])


def add_columns(table: dict[str, Sequence[Any]], data: Dataset | None, rows: Sequence[int]) -> None:
    """Add the metadata of samples to a table of columns; a name that is taken gets a number.

    Args:
        table: Columns of n values, by name.
        data: Data set of the samples; None if it cannot be read.
        rows: Sample indices (n,) in the data set.
    """
    for name, values in columns(data):
        table[_free_name(name, table)] = [_cell(value) for value in values[rows].tolist()]


def sample_columns(data: Dataset, rows: Sequence[int], prefix: str = "") -> dict[str, Sequence[Any]]:
    """Return the columns row, id, label and image of samples, as far as the data set has them.

    Args:
        data: Data set of the samples.
        rows: Sample indices (n,) in the data set.
        prefix: Text before each name of a column.
    """
    table: dict[str, Sequence[Any]] = {f"{prefix}row": rows}
    if data.keys is not None:
        table[f"{prefix}id"] = [str(data.keys[row]) for row in rows]
    if has_labels(data):
        table[f"{prefix}label"] = [data.class_names[label] for label in data.labels[rows].tolist()]
    if data.files is not None:
        table[f"{prefix}image"] = [printable(str(data.files[row])) for row in rows]
    return table


def pairs_csv(data: Dataset, first: ArrayLike, second: ArrayLike, distances: ArrayLike) -> str:
    """Return pairs of samples as CSV text, one line per pair.

    The columns are those of `sample_columns` for each of the two samples, starting with "a_" and "b_", and distance.

    Args:
        data: Data set of the samples.
        first: Sample indices (n,) of one sample of each pair.
        second: Sample indices (n,) of the other sample.
        distances: Distances (n,).
    """
    table: dict[str, Sequence[Any]] = {}
    for prefix, indices in (("a_", first), ("b_", second)):
        table |= sample_columns(data, np.asarray(indices, np.int64).tolist(), prefix)
    table["distance"] = [f"{distance:.7g}" for distance in np.asarray(distances, float).tolist()]
    return as_csv([list(table), *zip(*table.values(), strict=True)])


def _free_name(name: str, taken: Mapping[str, Any]) -> str:
    """Return the name of a column, with a number if another column has the name."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name} ({number})"
    return free


def _cell(value: Any) -> Any:
    return None if isinstance(value, float) and value != value else value
