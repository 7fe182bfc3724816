"""Guess of the column with the labels among columns without a usual name such as "label" or "class"."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from dmlcore.data.embedding_sets.source import shown

if TYPE_CHECKING:
    import pyarrow as pa

# names of classes in common data sets; a column "<name>_id" or "<name> name" counts as well
CLASS_NAMES = (
    *("species", "product", "identity", "person", "make", "model", "brand", "breed", "character", "type", "kind"),
    *("group", "cluster", "genus", "family", "landmark", "speaker", "author", "artist", "style", "topic", "item"),
)
_ENDINGS = ("", "_id", "_name", " id", " name", "id", "name")
REPEATS = 2  # rows that a class must have on average
MOST_COLUMNS = 200  # number of columns that are examined


def guess_label(columns: pa.Table, taken: Collection[str]) -> str | None:
    """Return the only column that looks like labels, or None if there is no such column or several.

    Labels are text, whole numbers or true/false values without gaps, of at least two distinct values that occur
    REPEATS times on average. A column with one of CLASS_NAMES is preferred; without one, only text is considered.

    Args:
        columns: Columns with N rows.
        taken: Names of columns with another role.
    """
    free = [name for name in columns.column_names if name not in taken][:MOST_COLUMNS]
    known = [f"{name}{ending}" for name in CLASS_NAMES for ending in _ENDINGS]
    named = [name for name in free if name.strip().lower() in known and _repeats(columns.column(name))]
    if named:
        return named[0] if len(named) == 1 else None
    text = [name for name in free if _is_text(columns.column(name)) and _repeats(columns.column(name))]
    return text[0] if len(text) == 1 else None


def describe_guess(columns: pa.Table, label: str) -> str:
    """Return a note that says why a column was guessed as the labels."""
    import pyarrow.compute as pc

    classes = pc.count_distinct(columns.column(label)).as_py()
    return f"labels: column {shown(label)} was guessed, because its {classes:,} values repeat"


def _repeats(column: pa.ChunkedArray) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    usable = _is_text(column) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    if not usable or column.null_count or not len(column):
        return False
    if pa.types.is_dictionary(kind):
        column = pc.cast(column, kind.value_type)
    return bool(2 <= pc.count_distinct(column).as_py() <= len(column) / REPEATS) and not _has_blank(column)


def _has_blank(column: pa.ChunkedArray) -> bool:
    import pyarrow.compute as pc

    return _is_text(column) and bool(pc.any(pc.equal(pc.utf8_trim_whitespace(column), "")).as_py())


def _is_text(column: pa.ChunkedArray) -> bool:
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
