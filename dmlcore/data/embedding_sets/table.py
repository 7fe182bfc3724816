"""Tables of embeddings: vectors that are streamed in checked chunks, and the other columns of a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlcore.data.dataset import DataError
from dmlcore.data.embedding_sets.source import listed
from dmlcore.typing import Array

if TYPE_CHECKING:
    import pyarrow as pa

MAX_ROWS = 2**31 - 1
MAX_DIMENSIONS = 65_536
MAX_COLUMNS = 10_000
MAX_MAGNITUDE = 1e18  # largest absolute value; its square is still finite in float32
MIN_MAGNITUDE = 1e-18  # a vector without a larger value counts as zero, because squares of its values vanish in float32


class AmbiguousVectors(DataError):
    """Error for a file with several candidates for the embeddings; `candidates` maps their names to descriptions."""

    def __init__(self, message: str, candidates: Mapping[str, str]) -> None:
        super().__init__(message)
        self.candidates = dict(candidates)


@dataclass(frozen=True, eq=False)
class Vectors:
    """Embeddings (N, D) that are read chunk by chunk, never as a whole.

    Attributes:
        shape: Number of rows N and dimensions D.
        dtype: float16, float32 or float64 in native byte order.
        source: Name of the file, and of the array or column in it, for messages.
        blocks: Function that maps a number of rows to an iterator over consecutive unchecked blocks (n, D).
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    source: str
    blocks: Callable[[int], Iterator[Array]]

    def chunks(self, rows: int) -> Iterator[Array]:
        """Yield all embeddings in order, as checked C-ordered arrays (n, D) of at most `rows` rows.

        Raises:
            DataError: If a row has another length or is missing, if a value is NaN, infinite or above 1e18 in
                magnitude, or if a vector is zero; the message names the row and the dimension, counted from 1.
        """
        done = 0
        for block in self.blocks(rows):
            for start in range(0, len(block), rows):
                chunk = np.ascontiguousarray(block[start : start + rows], self.dtype)
                _require_usable(chunk, done, self.source)
                done += len(chunk)
                yield chunk
        if done != self.shape[0]:
            raise DataError(f"{self.source} has {done:,} rows instead of {self.shape[0]:,}; save it again")


@dataclass(frozen=True, eq=False)
class VectorTable:
    """Embeddings with the other columns of their file.

    Attributes:
        vectors: Embeddings (N, D).
        columns: All other columns, N rows; it may have no columns.
        source: File name for messages.
        notes: Messages for the user, such as conversions and columns that were left out.
    """

    vectors: Vectors
    columns: pa.Table
    source: str
    notes: tuple[str, ...] = ()

    def with_columns(self, columns: pa.Table, source: str) -> VectorTable:
        """Return the table with additional columns from another file, whose rows are in the same order.

        Raises:
            DataError: If the number of rows differs or a column exists in both.
        """
        rows = self.vectors.shape[0]
        if columns.num_rows != rows:
            raise DataError(
                f"{source} has {columns.num_rows:,} rows, but {self.source} has {rows:,} vectors; give one row per "
                "vector, in the same order"
            )
        if repeated := [name for name in columns.column_names if name in self.columns.column_names]:
            raise DataError(
                f"{source} and {self.source} both have the columns {listed(repeated)}; rename or remove them"
            )
        joined = self.columns if self.columns.num_columns else columns
        if joined is not columns:
            for name in columns.column_names:
                joined = joined.append_column(name, columns.column(name))
        return replace(self, columns=joined)

    def with_notes(self, notes: Sequence[str]) -> VectorTable:
        """Return the table with additional messages for the user."""
        return replace(self, notes=(*self.notes, *notes))


def choose(candidates: Mapping[str, str], others: Mapping[str, str], wanted: str | None, source: str, kind: str) -> str:
    """Return the name of the array or column that holds the embeddings.

    Args:
        candidates: Names that may be the embeddings, each with a description such as its shape.
        others: All other names, each with a description.
        wanted: Name that the user chose; None chooses the only candidate.
        source: File name for messages.
        kind: "array" or "column".

    Raises:
        AmbiguousVectors: If `wanted` is None and there are several candidates; the message lists them.
        DataError: If there is no such name or no candidate; the message lists the names.
    """
    if wanted is not None:
        if wanted in candidates:
            return wanted
        if wanted in others:
            raise DataError(
                f"{source}: {kind} {wanted} cannot be the embeddings ({others[wanted]}); embeddings are one list of "
                f"numbers per row. Candidates: {listed(_described(candidates))}"
            )
        raise DataError(f"{source} has no {kind} {wanted}; it has {listed(_described({**candidates, **others}))}")
    if not candidates:
        raise DataError(
            f"{source} has no {kind} of embeddings, which is one list of numbers per row; it has "
            f"{listed(_described(others))}"
        )
    if len(candidates) > 1:
        raise AmbiguousVectors(
            f"{source} has {len(candidates)} {kind}s that may be the embeddings: {listed(_described(candidates))}; "
            "choose one with --vectors NAME",
            candidates,
        )
    return next(iter(candidates))


def require_columns(names: Sequence[str], source: str) -> None:
    """Raise DataError if there are more than MAX_COLUMNS columns or a name is repeated."""
    if len(names) > MAX_COLUMNS:
        raise DataError(
            f"{source} has {len(names):,} columns, the limit is {MAX_COLUMNS:,}; store each vector as one list"
        )
    if repeated := sorted(name for name, count in Counter(names).items() if count > 1):
        raise DataError(f"{source} has several columns named {listed(repeated)}; rename them")


def _described(names: Mapping[str, str]) -> list[str]:
    return [f"{name} ({what})" if what else name for name, what in names.items()]


def require_dtype(dtype: np.dtype[Any], source: str) -> tuple[np.dtype[Any], tuple[str, ...]]:
    """Return the dtype in which vectors of a stored `dtype` are read, and notes on conversions.

    Raises:
        DataError: If the dtype is not a real number of at most 64 bits.
    """
    if dtype.hasobject:
        raise DataError(f"{source} contains Python objects; save it as plain numbers")
    if dtype.kind == "f" and dtype.itemsize <= 8:
        return dtype.newbyteorder("="), ()
    if dtype.kind in "iu":
        return np.dtype(np.float32), (f"{source}: {dtype.name} values were converted to float32",)
    what = {"b": "true/false values", "c": "complex numbers", "U": "text", "S": "text", "M": "dates", "m": "durations"}
    raise DataError(
        f"{source} contains {what.get(dtype.kind, f'values of type {dtype}')}; embeddings are float16, float32, "
        "float64 or integers: convert them, for example with .astype('float32')"
    )


def require_shape(shape: tuple[int, ...], source: str) -> tuple[int, int]:
    """Return the shape of embeddings; raise DataError unless it is (N, D) with N >= 1 and 1 <= D <= MAX_DIMENSIONS."""
    if len(shape) != 2:
        size, axes = " x ".join(map(str, shape[:8])) or "a single number", "axis" if len(shape) == 1 else "axes"
        raise DataError(f"{source} has {len(shape)} {axes} ({size}); embeddings need two: one row per sample")
    rows, dimensions = shape
    if rows < 1 or dimensions < 1:
        raise DataError(f"{source} has {rows:,} rows and {dimensions:,} dimensions; at least one of each is needed")
    if dimensions > MAX_DIMENSIONS:
        raise DataError(
            f"{source} has {dimensions:,} dimensions, the limit is {MAX_DIMENSIONS:,}; transpose it or save fewer"
        )
    if rows > MAX_ROWS:
        raise DataError(f"{source} has {rows:,} rows, the limit is {MAX_ROWS:,}; divide it")
    return rows, dimensions


def _require_usable(chunk: Array, start: int, source: str) -> None:
    """Raise DataError for the first row of `chunk` that is zero or has an unusable value; `start` rows come before."""
    if chunk.dtype == np.float16:
        largest: Array = (chunk.view(np.uint16) & 0x7FFF).max(axis=1)  # bit patterns of magnitudes are ordered
        bad, zero = largest >= 0x7C00, largest == 0
    else:
        with np.errstate(invalid="ignore"):
            largest = np.maximum(chunk.max(axis=1), -chunk.min(axis=1))
        bad, zero = ~(largest <= MAX_MAGNITUDE), largest < MIN_MAGNITUDE
    if bad.any():
        row = int(bad.argmax())
        with np.errstate(invalid="ignore"):  # signalling NaN
            at = int((~(np.abs(chunk[row].astype(np.float64)) <= MAX_MAGNITUDE)).argmax())
        value = chunk[row, at]
        what = f"{value}" if not np.isfinite(value) else f"{value:g}, above 1e18 in magnitude,"
        raise DataError(
            f"{source}, row {start + row + 1:,}: {what} in dimension {at + 1:,} of {chunk.shape[1]:,}; correct or "
            "remove this row"
        )
    if zero.any():
        row = start + int(zero.argmax()) + 1
        raise DataError(
            f"{source}, row {row:,}: all {chunk.shape[1]:,} values are 0, so that its cosine similarity is undefined; "
            "remove this row"
        )
