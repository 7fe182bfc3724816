"""Conversion of arrays, tensors and data frames in memory to a table of embeddings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from dmlcore.data.dataset import DataError
from dmlcore.data.embedding_sets import arrow, raw
from dmlcore.data.embedding_sets.table import Vectors, VectorTable, require_dtype, require_shape
from dmlcore.typing import Array

LABEL = "embeddings"


def from_arrays(vectors: Any = None, columns: Any = None, source: str = "arrays") -> VectorTable:
    """Return a table of embeddings from objects in memory.

    Args:
        vectors: Embeddings (N, D) as an array, tensor, list of lists or data frame of numbers; or the name of a column
            of `columns` that holds lists of numbers; None chooses the only such column.
        columns: Other columns of N values: a mapping of names to arrays, tensors or lists, a pandas DataFrame, or an
            Arrow table.
        source: Name for messages.

    Raises:
        DataError: If shapes or types do not fit.

    Example:
        >>> import numpy as np
        >>> table = from_arrays(np.eye(3, dtype=np.float32), {"label": ["a", "b", "b"]})
        >>> table.vectors.shape, table.columns.column_names
        ((3, 3), ['label'])
    """
    if vectors is None or isinstance(vectors, str):
        return _from_frame(vectors, columns, source)
    values = _array(vectors, LABEL)
    shape = require_shape(values.shape, LABEL)
    dtype, notes = require_dtype(values.dtype, LABEL)

    def blocks(rows: int) -> Iterator[Array]:
        for start in range(0, len(values), rows):
            yield values[start : start + rows]

    table = VectorTable(Vectors(shape, dtype, LABEL, blocks), pa.table({}), source, notes)
    if columns is None:
        return table
    plain, left = as_columns(columns, source)
    return VectorTable(table.vectors, table.with_columns(plain, "columns").columns, source, notes + left)


def _from_frame(wanted: str | None, columns: Any, source: str) -> VectorTable:
    """Return a table from a frame in which one column holds the embeddings."""
    if columns is None:
        raise DataError("no embeddings were given; pass an array (N, D), or a data frame with a column of lists")
    frame = _columns(columns)
    plan = arrow.layout(frame.schema, wanted, source)
    label, kind = f"{source}, column {plan.vectors}", frame.schema.field(plan.vectors).type
    dtype, _ = require_dtype(plan.number, label)
    width = arrow.width_of(frame.column(plan.vectors), kind, label)
    shape = require_shape((frame.num_rows, width), label)

    def blocks(rows: int) -> Iterator[Array]:
        yield from arrow.sliced(iter(frame.to_batches()), plan.vectors, width, rows, label)

    return VectorTable(Vectors(shape, dtype, label, blocks), frame.select(list(plan.kept)), source, plan.notes)


def _array(values: Any, label: str) -> Array:
    """Return an array, tensor or nested list as an array without Python objects."""
    if hasattr(values, "detach"):  # a torch tensor
        values = values.detach().cpu()
        if str(values.dtype) == "torch.bfloat16":
            values = values.float()
    elif hasattr(values, "to_numpy"):  # a data frame or series
        values = values.to_numpy()
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise DataError(f"{label} is not a rectangular array ({error}); embeddings must have the same length") from None
    if array.dtype.hasobject and array.ndim == 1 and array.size and isinstance(array[0], np.ndarray | list | tuple):
        return _array(array.tolist(), label)  # a series of vectors
    return array


def _columns(columns: Any) -> pa.Table:
    """Return a mapping, data frame or Arrow table as an Arrow table."""
    if isinstance(columns, pa.Table):
        return columns
    try:
        if hasattr(columns, "to_dict") and hasattr(columns, "columns"):
            return pa.Table.from_pandas(columns, preserve_index=False)
        if isinstance(columns, Mapping):
            made = {str(name): _column(values, str(name)) for name, values in columns.items()}
            sizes = {name: len(values) for name, values in made.items()}
            if len(set(sizes.values())) > 1:
                counts = ", ".join(f"{name}: {size:,}" for name, size in sizes.items())
                raise DataError(f"the columns have different lengths ({counts}); give one value per row")
            return pa.table(made)
    except (pa.ArrowException, TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"the columns cannot be converted ({error}); give numbers, text or dates") from None
    raise DataError(f"columns must be a mapping, a DataFrame or an Arrow table, got {type(columns).__name__}")


def _column(values: Any, name: str) -> Any:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    is_list = isinstance(values, Sequence) and not isinstance(values, str)
    array = values if is_list else _array(values, name)
    if isinstance(array, np.ndarray) and array.ndim == 1 and not array.dtype.hasobject:
        return raw.as_column(array, f"column {name}")
    return pa.array(array.tolist() if isinstance(array, np.ndarray) else array)


def as_columns(columns: Any, source: str) -> tuple[pa.Table, tuple[str, ...]]:
    """Return columns of numbers, text and dates as an Arrow table, and notes on columns that were left out.

    Args:
        columns: Mapping of names to N values, pandas DataFrame, or Arrow table.
        source: Name for messages.

    Raises:
        DataError: If the lengths differ or values cannot be converted.
    """
    table = _columns(columns)
    plan = arrow.layout(table.schema, None, source, with_vectors=False)
    return table.select(list(plan.kept)), plan.notes
