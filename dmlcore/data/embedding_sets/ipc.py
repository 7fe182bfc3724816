"""Reading of Arrow IPC files and streams (.arrow, .feather), batch by batch; declared sizes are checked before.

A file consists of a magic number, a stream, and a footer that repeats the positions of the batches. Both forms are read
as streams, so that the footer of a forged file has no effect. Uncompressed batches are memory-mapped.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from dmlcore.data.dataset import DataError
from dmlcore.data.embedding_sets import arrow
from dmlcore.data.embedding_sets.source import SourceFile, reading
from dmlcore.data.embedding_sets.table import Vectors, VectorTable, require_dtype, require_shape
from dmlcore.typing import Array

MAGIC = b"ARROW1"
_DICTIONARY, _BATCH = 2, 3  # types of messages
_HEADER_TYPE, _HEADER = 1, 2  # fields of a message
_LENGTH, _BUFFERS, _COMPRESSION = 0, 2, 3  # fields of a record batch


def read_ipc(source: SourceFile, wanted: str | None) -> VectorTable:
    """Return the embeddings of an Arrow IPC file or stream and its columns of numbers, text and dates.

    Args:
        source: The file.
        wanted: Column with the embeddings; None chooses the only one that holds lists of numbers.

    Raises:
        DataError: If the file is damaged or the column of embeddings cannot be chosen.
    """
    with reading(source, "Arrow"):
        rows, schema = _count_rows(source), _schema(source)
        plan = arrow.layout(schema, wanted, source.name)
        label = f"{source.name}, column {plan.vectors}"
        kind = schema.field(plan.vectors).type
        dtype, _ = require_dtype(plan.number, label)
        first = next((batch for batch in _batches(source, (plan.vectors,)) if batch.num_rows), None)
        if first is None:
            raise DataError(f"{label} has no rows; at least one is needed")
        width = arrow.width_of(first.column(0), kind, label)
        shape = require_shape((rows, width), label)
        columns = _columns(source, schema, plan.kept)

    def blocks(count: int) -> Iterator[Array]:
        with reading(source, "Arrow"):
            yield from arrow.sliced(_batches(source, (plan.vectors,)), plan.vectors, width, count, label)

    return VectorTable(Vectors(shape, dtype, label, blocks), columns, source.name, plan.notes)


def read_ipc_columns(source: SourceFile) -> tuple[pa.Table, tuple[str, ...]]:
    """Return the columns of numbers, text and dates of an Arrow file, and notes on the others."""
    with reading(source, "Arrow"):
        _count_rows(source)
        schema = _schema(source)
        plan = arrow.layout(schema, None, source.name, with_vectors=False)
        return _columns(source, schema, plan.kept), plan.notes


def _stream(source: SourceFile) -> pa.MemoryMappedFile:
    with source.open() as file:  # refuses a file that has changed
        is_file = file.read(len(MAGIC)) == MAGIC
    native = pa.memory_map(os.fspath(source.path))
    native.seek(8 if is_file else 0)
    return native


def _schema(source: SourceFile) -> pa.Schema:
    with _stream(source) as stream, pa.ipc.open_stream(stream) as reader:
        return reader.schema


def _batches(source: SourceFile, names: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """Yield the batches with the columns `names` only, in the order of the file, after validating their contents."""
    schema = _schema(source)
    options = pa.ipc.IpcReadOptions(included_fields=sorted(schema.get_field_index(name) for name in names))
    with _stream(source) as stream, pa.ipc.open_stream(stream, options=options) as reader:
        for batch in reader:
            batch.validate(full=True)  # offsets of a forged file could lead outside its buffers
            yield batch


def _columns(source: SourceFile, schema: pa.Schema, names: tuple[str, ...]) -> pa.Table:
    if not names:
        return pa.table({})
    batches = list(_batches(source, names))
    kept = pa.schema([schema.field(name) for name in names])
    table = pa.Table.from_batches(batches, batches[0].schema if batches else kept).replace_schema_metadata(None)
    return arrow.decoded(table, source)


def _count_rows(source: SourceFile) -> int:
    """Return the number of rows; raise DataError if the declared sizes of compressed buffers are implausible."""
    rows = unpacked = 0
    with _stream(source) as stream:
        for message in pa.ipc.MessageReader.open_stream(stream):
            header = memoryview(message.metadata)
            root = _Flatbuffer(header, _unsigned(header, 0))
            kind, batch = root.scalar(_HEADER_TYPE, "B"), root.table(_HEADER)
            if kind == _DICTIONARY and batch:
                batch = batch.table(1)
            if kind not in (_DICTIONARY, _BATCH) or batch is None:
                continue
            rows += batch.scalar(_LENGTH, "q") if kind == _BATCH else 0
            if batch.table(_COMPRESSION):
                unpacked += _unpacked_size(batch, memoryview(message.body))
                source.require_plausible(unpacked)
    return rows


def _unpacked_size(batch: _Flatbuffer, body: memoryview) -> int:
    """Return the total size of the compressed buffers of a batch, each of which begins with its unpacked size."""
    size = 0
    for offset, length in batch.pairs(_BUFFERS):
        if length >= 8:
            declared = struct.unpack_from("<q", body, offset)[0]
            size += declared if declared >= 0 else length
    return size


def _unsigned(content: memoryview, at: int) -> int:
    return int(struct.unpack_from("<I", content, at)[0])


class _Flatbuffer:
    """Table of a flatbuffer, https://flatbuffers.dev/internals, with access to its fields by number."""

    def __init__(self, content: memoryview, at: int) -> None:
        self._content, self._at = content, at
        self._fields = at - int(struct.unpack_from("<i", content, at)[0])

    def _position(self, field: int) -> int | None:
        size = struct.unpack_from("<H", self._content, self._fields)[0]
        if 4 + 2 * field >= size:
            return None
        offset = struct.unpack_from("<H", self._content, self._fields + 4 + 2 * field)[0]
        return self._at + offset if offset else None

    def scalar(self, field: int, form: str) -> int:
        """Return the integer in `field`, which has the struct format `form`; 0 if the field is absent."""
        position = self._position(field)
        return 0 if position is None else int(struct.unpack_from(f"<{form}", self._content, position)[0])

    def table(self, field: int) -> _Flatbuffer | None:
        """Return the table in `field`, or None if it is absent."""
        position = self._position(field)
        return None if position is None else _Flatbuffer(self._content, position + _unsigned(self._content, position))

    def pairs(self, field: int) -> Iterator[tuple[Any, ...]]:
        """Yield the elements of a vector of structs of two 64-bit integers."""
        position = self._position(field)
        if position is not None:
            start = position + _unsigned(self._content, position)
            for number in range(_unsigned(self._content, start)):
                yield struct.unpack_from("<qq", self._content, start + 4 + 16 * number)
