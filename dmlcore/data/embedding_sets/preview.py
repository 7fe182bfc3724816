"""Preview of files of embeddings before they are imported: shape, columns, first rows and guessed roles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dmlcore.data.embedding_sets import files
from dmlcore.data.embedding_sets.roles import Roles
from dmlcore.data.printable import printable

ROWS = 5
SHOWN_VALUES = 4  # first values of a vector
MAX_CELL = 200  # maximum length of a cell in characters


@dataclass(frozen=True)
class Preview:
    """Contents of a file of embeddings, without the embeddings themselves.

    Attributes:
        source: Name of the file.
        rows: Number of vectors N.
        dimensions: Number of dimensions D.
        dtype: Data type of the vectors.
        columns: Names of the other columns.
        first: First ROWS rows of each column, as text, numbers or None.
        vectors: First values of the first ROWS vectors, as text.
        roles: Columns with labels, ids, images and splits, as far as they can be guessed.
        label_is_guessed: True if the column with the labels has no usual name and was guessed from its values.
        notes: Messages for the user.
    """

    source: str
    rows: int
    dimensions: int
    dtype: str
    columns: tuple[str, ...]
    first: dict[str, list[Any]]
    vectors: tuple[str, ...]
    roles: Roles
    label_is_guessed: bool
    notes: tuple[str, ...]


def preview(path: Path | str, labels: Path | str | None = None, *, vectors: str | None = None) -> Preview:
    """Return a preview of a file of embeddings and a file of labels; of the vectors, only the first rows are read.

    Args:
        path: File of embeddings.
        labels: File with one row per vector; None if there is none.
        vectors: Name of the array or column with the embeddings; None chooses the only candidate.

    Raises:
        DataError: If a file cannot be used, or one of the first vectors is unusable.
    """
    table = files.read_labelled(path, labels, vectors=vectors)
    first = next(table.vectors.chunks(ROWS))
    rows, dimensions = table.vectors.shape
    names = tuple(table.columns.column_names)
    roles = Roles.guess(table.columns)
    if roles == Roles() and labels is not None and len(names) == 1:
        roles = replace(roles, label=names[0])
    shown = table.columns.slice(0, ROWS)
    return Preview(
        source=table.source,
        rows=rows,
        dimensions=dimensions,
        dtype=table.vectors.dtype.name,
        columns=names,
        first={name: [_cell(value) for value in shown.column(name).to_pylist()] for name in names},
        vectors=tuple(_vector(vector) for vector in first),
        roles=roles,
        label_is_guessed=bool(roles.guess_notes(table.columns)),
        notes=table.notes,
    )


def _cell(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float)) else printable(str(value), MAX_CELL)


def _vector(vector: Any) -> str:
    more = ", …" if len(vector) > SHOWN_VALUES else ""
    return ", ".join(f"{value:.3g}" for value in vector[:SHOWN_VALUES].tolist()) + more
