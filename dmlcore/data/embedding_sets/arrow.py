"""Conversion of Arrow columns: lists of numbers to matrices, and choice of the columns that are kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dmlcore.data.dataset import DataError
from dmlcore.data.embedding_sets.source import SourceFile, listed
from dmlcore.data.embedding_sets.table import choose, require_columns, require_dtype
from dmlcore.typing import Array


@dataclass(frozen=True)
class ColumnPlan:
    """Columns of an Arrow file by use.

    Attributes:
        vectors: Name of the column with the embeddings; "" if none was requested.
        kept: Names of the other columns that are read.
        notes: Notes on columns that were left out.
        number: Type of the numbers in the column with the embeddings; float32 if none was requested.
    """

    vectors: str
    kept: tuple[str, ...]
    notes: tuple[str, ...]
    number: np.dtype[Any]


def layout(schema: pa.Schema, wanted: str | None, source: str, *, with_vectors: bool = True) -> ColumnPlan:
    """Choose the column of embeddings and the columns to keep; lists, structs and binary columns are left out.

    Args:
        schema: Columns of the file.
        wanted: Column with the embeddings; None chooses the only one that holds lists of numbers.
        source: File name for messages.
        with_vectors: False for a file of labels and metadata.

    Raises:
        DataError: If column names are repeated, or the column of embeddings cannot be chosen.
    """
    names = schema.names
    require_columns(names, source)
    kinds = {field.name: str(field.type) for field in schema}
    lists = {field.name: kind for field in schema if (kind := number_type(field.type)) is not None}
    floats = [name for name, kind in lists.items() if pa.types.is_floating(kind)]
    chosen = ""
    if with_vectors:
        candidates = {name: kinds[name] for name in (floats or lists)}
        if wanted in lists:
            candidates[wanted] = kinds[wanted]
        others = {name: kind for name, kind in kinds.items() if name not in candidates}
        chosen = choose(candidates, others, wanted, source, "column")
    kept = tuple(field.name for field in schema if is_plain(field.type) and field.name != chosen)
    read = {chosen, *kept}
    left = [f"{name} ({kinds[name]})" for name in names if name not in read]
    notes: tuple[str, ...] = ()
    if left:
        notes = (f"{source}: left out {listed(left)}; only numbers, text and dates are kept",)
    if not chosen:
        return ColumnPlan(chosen, kept, notes, np.dtype(np.float32))
    number = np.dtype(lists[chosen].to_pandas_dtype())
    converted = require_dtype(number, f"{source}, column {chosen}")[1]
    return ColumnPlan(chosen, kept, converted + notes, number)


def number_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the type of the numbers in a column of lists, or None for any other column."""
    kind = _storage(kind)
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    if not is_list or not (pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type)):
        return None
    return kind.value_type


def is_plain(kind: pa.DataType) -> bool:
    """Return True for columns of numbers, text, dates, true/false values, and categories of these."""
    if pa.types.is_dictionary(kind):
        return is_plain(kind.value_type)
    types = pa.types
    return bool(
        (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))
        or (types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))
        or types.is_temporal(kind)
    )


def width_of(column: pa.Array | pa.ChunkedArray, kind: pa.DataType, label: str) -> int:
    """Return the dimension of embeddings of type `kind`, from the type or from the first row of `column`.

    Raises:
        DataError: If there is no row or the first row is missing.
    """
    kind = _storage(kind)
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size)
    if len(column) == 0:
        raise DataError(f"{label} has no rows; at least one is needed")
    first = column.slice(0, 1)
    if first.null_count:
        raise DataError(f"{label}, row 1 is empty; give every row a vector, or remove it")
    return int(pc.list_value_length(_chunk_storage(first))[0].as_py())


def matrix(column: pa.Array, width: int, start: int, label: str) -> Array:
    """Return lists of numbers as an array (n, width); `start` rows of the file come before.

    Raises:
        DataError: If a row or a number is missing, or a row has another length; the message names the row.
    """
    column = _chunk_storage(column)
    if column.null_count:
        row = start + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False))) + 1
        raise DataError(f"{label}, row {row:,} is empty; give every row a vector, or remove it")
    if not pa.types.is_fixed_size_list(column.type):
        lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
        if len(lengths) and not (lengths == width).all():
            at = int(np.argmax(lengths != width))
            raise DataError(
                f"{label}, row {start + at + 1:,} has {lengths[at]:,} values, but row 1 has {width:,}; embeddings "
                "must have the same length"
            )
    values = column.flatten()
    if values.null_count:
        at = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
        raise DataError(
            f"{label}, row {start + at // width + 1:,}: dimension {at % width + 1:,} is empty; correct or remove this "
            "row"
        )
    numbers: Array = values.to_numpy(zero_copy_only=False)
    return numbers.reshape(len(column), width)


def decoded(table: pa.Table, source: SourceFile) -> pa.Table:
    """Replace categories by their values; raise DataError if these take implausibly many bytes."""
    for number, name in enumerate(table.column_names):
        column = table.column(number)
        if not pa.types.is_dictionary(column.type):
            continue
        size = sum(map(_decoded_size, column.chunks))
        source.require_plausible(size, f"the column {name}")
        kind = column.type.value_type
        if pa.types.is_string(kind) and size > 2**30:
            kind = pa.large_string()  # offsets of `string` have 32 bits
        table = table.set_column(number, name, pc.cast(column, kind))
    return table


def _decoded_size(chunk: pa.DictionaryArray) -> int:
    values = chunk.dictionary
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        return 16 * len(chunk)
    sizes = pc.binary_length(values).fill_null(0)
    return int(pc.sum(pc.cast(sizes.take(chunk.indices), pa.int64())).as_py() or 0) + 8 * len(chunk)


def sliced(batches: Iterator[pa.RecordBatch], name: str, width: int, rows: int, label: str) -> Iterator[Array]:
    """Yield a column of lists of numbers in arrays (n, width) of at most `rows` rows."""
    done = 0
    for batch in batches:
        column = batch.column(batch.schema.get_field_index(name))
        for start in range(0, len(column), rows):
            yield matrix(column.slice(start, rows), width, done + start, label)
        done += len(column)


def _storage(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _chunk_storage(column: pa.Array) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return column.storage if isinstance(column, pa.ExtensionArray) else column
