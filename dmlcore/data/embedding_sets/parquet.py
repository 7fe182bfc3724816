"""Reading of Parquet files, streamed by row group; sizes that the metadata declare are checked before."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import closing

import pyarrow as pa
import pyarrow.parquet as pq

from dmlcore.data.dataset import DataError
from dmlcore.data.embedding_sets import arrow
from dmlcore.data.embedding_sets.source import SourceFile, reading
from dmlcore.data.embedding_sets.table import (
    MAX_DIMENSIONS,
    Vectors,
    VectorTable,
    require_dtype,
    require_shape,
)
from dmlcore.typing import Array

BUFFER = 2**20  # bytes that are read at a time; without this, a whole column of a row group is read at once
COLUMN_ROWS = 65_536  # rows of labels and metadata that are read at a time


def read_parquet(source: SourceFile, wanted: str | None) -> VectorTable:
    """Return the embeddings of a Parquet file and its columns of numbers, text and dates.

    Args:
        source: The file.
        wanted: Column with the embeddings; None chooses the only one that holds lists of numbers.

    Raises:
        DataError: If the file is damaged or the column of embeddings cannot be chosen.
    """
    with reading(source, "Parquet"), closing(_open(source)) as file:
        schema, rows = _schema(source), file.metadata.num_rows
        plan = arrow.layout(schema, wanted, source.name)
        label = f"{source.name}, column {plan.vectors}"
        kind = schema.field(plan.vectors).type
        dtype, _ = require_dtype(plan.number, label)
        _require_plausible_lists(file, source, plan.vectors, plan.number.itemsize)
        first = next(file.iter_batches(1, columns=[plan.vectors]), None) if rows else None
        if first is None:
            raise DataError(f"{label} has no rows; at least one is needed")
        column = first.column(first.schema.get_field_index(plan.vectors))
        width = arrow.width_of(column, kind, label)
        shape = require_shape((rows, width), label)
        source.require_plausible(rows * width * plan.number.itemsize, f"the column {plan.vectors}")
        columns = _columns(source, file, plan.kept)

    def blocks(count: int) -> Iterator[Array]:
        with reading(source, "Parquet"), closing(_open(source)) as again:
            batches = again.iter_batches(count, columns=[plan.vectors])
            yield from arrow.sliced(batches, plan.vectors, width, count, label)

    return VectorTable(Vectors(shape, dtype, label, blocks), columns, source.name, plan.notes)


def read_parquet_columns(source: SourceFile) -> tuple[pa.Table, tuple[str, ...]]:
    """Return the columns of numbers, text and dates of a Parquet file, and notes on the others."""
    with reading(source, "Parquet"), closing(_open(source)) as file:
        plan = arrow.layout(_schema(source), None, source.name, with_vectors=False)
        return _columns(source, file, plan.kept), plan.notes


def _schema(source: SourceFile) -> pa.Schema:
    with pa.OSFile(os.fspath(source.path)) as native:
        return pq.read_schema(native)


def _open(source: SourceFile) -> pq.ParquetFile:
    """Open the file; text columns are read as categories, so that a value repeated in every row is stored once."""
    source.open().close()  # refuses a file that has changed
    kinds = {field.name: field.type for field in _schema(source)}
    text = [name for name, kind in kinds.items() if pa.types.is_string(kind) or pa.types.is_large_string(kind)]
    native = pa.OSFile(os.fspath(source.path))
    return pq.ParquetFile(native, read_dictionary=text, buffer_size=BUFFER, pre_buffer=False)


def _columns(source: SourceFile, file: pq.ParquetFile, names: tuple[str, ...]) -> pa.Table:
    rows = file.metadata.num_rows
    if not names:
        return pa.table({})
    source.require_plausible(8 * rows * len(names), "its columns")
    _require_plausible_pages(file, source, set(names))
    schema = pa.schema([file.schema_arrow.field(name) for name in names])
    batches, size = [], 0
    for batch in file.iter_batches(COLUMN_ROWS, columns=list(names)):
        batch = batch.select(list(names))
        size += batch.nbytes
        source.require_plausible(size, "its columns")
        batches.append(batch)
    table = pa.Table.from_batches(batches, batches[0].schema if batches else schema).replace_schema_metadata(None)
    return arrow.decoded(table, source)


def _require_plausible_pages(file: pq.ParquetFile, source: SourceFile, names: Collection[str]) -> None:
    """Compare the declared unpacked sizes of the columns `names` with the size of the file."""
    unpacked = 0
    for group in range(file.metadata.num_row_groups):
        for chunk in _chunks(file, group):
            path = chunk.path_in_schema
            if path in names or path.partition(".")[0] in names:
                unpacked += chunk.total_uncompressed_size
    source.require_plausible(unpacked, "its columns")


def _require_plausible_lists(file: pq.ParquetFile, source: SourceFile, name: str, itemsize: int) -> None:
    """Compare the declared number of values in the column of embeddings with rows, dimensions and size of the file."""
    values = 0
    for group in range(file.metadata.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        for chunk in _chunks(file, group):
            if not chunk.path_in_schema.startswith(f"{name}."):
                continue
            if chunk.num_values > rows * MAX_DIMENSIONS:
                raise DataError(
                    f"{source.name}, column {name}: row group {group + 1} has {chunk.num_values:,} values in {rows:,} "
                    f"rows, more than {MAX_DIMENSIONS:,} per row; divide the vectors or check the file"
                )
            values += chunk.num_values
    source.require_plausible(values * itemsize, f"the column {name}")
    _require_plausible_pages(file, source, {name})


def _chunks(file: pq.ParquetFile, group: int) -> list[pq.ColumnChunkMetaData]:
    metadata = file.metadata.row_group(group)
    return [metadata.column(number) for number in range(metadata.num_columns)]
