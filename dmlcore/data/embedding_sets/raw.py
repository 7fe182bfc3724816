"""Reading of .npy and .safetensors files: their headers are checked before any value is read, nothing is unpickled."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.lib import format as npy

from dmlcore.data.dataset import DataError
from dmlcore.data.embedding_sets.source import SourceFile, listed, reading
from dmlcore.data.embedding_sets.table import Vectors, VectorTable, choose, require_dtype, require_shape
from dmlcore.typing import Array

if TYPE_CHECKING:
    import pyarrow as pa

MAX_HEADER = 2**24  # bytes of the header of a .safetensors file
_BFLOAT16 = "BF16"
_SAFETENSORS = {
    **{"F64": "<f8", "F32": "<f4", "F16": "<f2", _BFLOAT16: "<u2", "BOOL": "?"},
    **{f"{kind.upper()}{bits}": f"<{kind}{bits // 8}" for kind in "iu" for bits in (8, 16, 32, 64)},
}


class StoredArray(Protocol):
    """Array in a file, of which the header has been read."""

    @property
    def label(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    def values(self) -> Array: ...
    def vectors(self) -> tuple[Vectors, tuple[str, ...]]: ...


@dataclass(frozen=True)
class RawArray:
    """Array that is stored without compression in a file; its size has been compared with that of the file.

    Attributes:
        source: The file.
        label: Name of the file and of the array in it, for messages.
        offset: Position of the first value in bytes.
        shape: Shape of the array.
        dtype: dtype as stored.
        fortran: True if the first axis varies fastest.
        is_bfloat16: True if `dtype` is uint16 and holds the bits of bfloat16 values.
    """

    source: SourceFile
    label: str
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran: bool = False
    is_bfloat16: bool = False

    def blocks(self, rows: int) -> Iterator[Array]:
        """Yield the rows of a matrix in blocks of at most `rows`."""
        count, width = self.shape
        with reading(self.source, "an array"), self.source.open() as file:
            for start in range(0, count, rows):
                size = min(rows, count - start)
                if not self.fortran:
                    yield self._values(file, start * width, size * width).reshape(size, width)
                    continue
                columns = np.empty((width, size), self.dtype)
                for column in range(width):
                    columns[column] = self._values(file, column * count + start, size)
                yield columns.T

    def values(self) -> Array:
        """Return all values of a one-dimensional array."""
        with reading(self.source, "an array"), self.source.open() as file:
            return self._values(file, 0, self.shape[0])

    def vectors(self) -> tuple[Vectors, tuple[str, ...]]:
        """Return the array as embeddings, with notes; raise DataError unless it is a usable matrix."""
        shape = require_shape(self.shape, self.label)
        dtype, notes = require_dtype(np.dtype(np.float32) if self.is_bfloat16 else self.dtype, self.label)
        return Vectors(shape, dtype, self.label, self.blocks), notes

    def _values(self, file: IO[bytes], first: int, count: int) -> Array:
        file.seek(self.offset + first * self.dtype.itemsize)
        values = read_values(file, self.dtype, count)
        if self.is_bfloat16:
            values = (values.astype(np.uint32) << 16).view(np.float32)
        return values


def read_npy(source: SourceFile) -> RawArray:
    """Return the array of a .npy file; raise DataError if its header is damaged or does not match the file's size."""
    with reading(source, "a NumPy array (.npy)"), source.open() as file:
        shape, fortran, dtype = read_header(file, source.name)
        offset = file.tell()
    require_size(shape, dtype, source.size - offset, source.name)
    return RawArray(source, source.name, offset, shape, dtype, fortran)


def read_header(file: IO[bytes], label: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, Fortran order and dtype from the header of a .npy file; raise DataError for Python objects."""
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = read(file)
    if dtype.hasobject:
        raise DataError(f"{label} contains Python objects; save it as plain numbers")
    if dtype.itemsize == 0 or min(shape, default=0) < 0:
        raise ValueError(f"its header says {dtype}, shape {shape}")
    return shape, fortran and len(shape) > 1, dtype


def read_values(file: IO[bytes], dtype: np.dtype[Any], count: int) -> Array:
    """Return the next `count` values of a file, shape (count,); raise EOFError if there are fewer."""
    content = np.empty(count * dtype.itemsize, np.uint8)
    view, done = content.data, 0
    while done < len(content):
        got = file.readinto(view[done:])  # type: ignore[attr-defined]
        if not got:
            raise EOFError("the file ends too early")
        done += got
    values: Array = content.view(dtype)
    return values


def require_size(shape: tuple[int, ...], dtype: np.dtype[Any], present: int, label: str) -> None:
    """Raise DataError unless an array of this shape and dtype takes exactly `present` bytes."""
    needed = math.prod(shape) * dtype.itemsize
    if needed != present:
        size = " x ".join(f"{side:,}" for side in shape[:8]) or "1"
        raise DataError(
            f"{label}: its header says {size} values of type {dtype.name}, which take {needed:,} bytes, but the file "
            f"has {present:,}; it is {'incomplete' if needed > present else 'damaged'}: save it again"
        )


def npy_table(source: SourceFile) -> VectorTable:
    """Return the embeddings of a .npy file as a table without other columns."""
    import pyarrow as pa

    vectors, notes = read_npy(source).vectors()
    return VectorTable(vectors, pa.table({}), source.name, notes)


def read_safetensors(source: SourceFile, wanted: str | None) -> VectorTable:
    """Return the embeddings of a .safetensors file; one-dimensional tensors of N values become columns.

    Args:
        source: The file.
        wanted: Name of the tensor with the embeddings; None chooses the only matrix.
    """
    with reading(source, "safetensors"), source.open() as file:
        length = int.from_bytes(file.read(8), "little")
        if length > min(MAX_HEADER, source.size - 8):
            raise ValueError(f"its header is declared as {length:,} bytes")
        header = json.loads(file.read(length))
        header.pop("__metadata__", None)
        arrays = {name: _tensor(source, name, entry, 8 + length) for name, entry in header.items()}
    return table_of(arrays, wanted, source)


def _tensor(source: SourceFile, name: str, entry: dict[str, Any], start: int) -> RawArray:
    kind, shape, (begin, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
    label = f"{source.name}, tensor {name}"
    if kind not in _SAFETENSORS:
        raise DataError(f"{label} has the type {kind}, which is not supported; save it as F32")
    if not all(type(number) is int and number >= 0 for number in (*shape, begin, end)):
        raise ValueError(f"tensor {name} has a malformed header")
    dtype = np.dtype(_SAFETENSORS[kind])
    require_size(shape, dtype, min(end, source.size - start) - begin, label)
    return RawArray(source, label, start + begin, shape, dtype, is_bfloat16=kind == _BFLOAT16)


def table_of(arrays: Mapping[str, StoredArray], wanted: str | None, source: SourceFile) -> VectorTable:
    """Return the table of a file with several arrays: one matrix of embeddings, and columns of N values.

    The embeddings are the only matrix of floats, or of integers if there are none. Arrays of another shape are left
    out, with a note.
    """
    import pyarrow as pa

    described = {name: f"{' x '.join(map(str, array.shape)) or '1'} {array.dtype}" for name, array in arrays.items()}
    numeric = [name for name, array in arrays.items() if len(array.shape) == 2 and array.dtype.kind in "fiu"]
    candidates = [name for name in numeric if arrays[name].dtype.kind == "f"] or numeric
    others = {name: what for name, what in described.items() if name not in candidates}
    chosen = choose({name: described[name] for name in candidates}, others, wanted, source.name, "array")
    vectors, notes = arrays[chosen].vectors()
    rows = vectors.shape[0]
    aligned = {name: array for name, array in arrays.items() if array.shape == (rows,)}
    source.require_plausible(sum(array.dtype.itemsize * rows for array in aligned.values()), "its arrays")
    columns = pa.table({name: as_column(array.values(), array.label) for name, array in aligned.items()})
    left = [f"{name} ({what})" for name, what in described.items() if name not in aligned and name != chosen]
    if left:
        notes += (f"{source.name}: left out {listed(left)}",)
    return VectorTable(vectors, columns, source.name, notes)


def as_column(values: Array, label: str) -> pa.Array:
    """Return a one-dimensional array of numbers, text, dates or true/false values as an Arrow array.

    Raises:
        DataError: If the array contains Python objects or values of another type.
    """
    import pyarrow as pa

    kind = values.dtype.kind
    if values.dtype.hasobject:
        raise DataError(f"{label} contains Python objects; save it as plain numbers or as text, with .astype(str)")
    if kind not in "fiubUSMm":
        raise DataError(f"{label} has the type {values.dtype}, which is not supported; save numbers or text")
    if kind == "S":
        return pa.array([value.decode("utf-8") for value in values.tolist()], pa.string())
    if kind == "U":
        return pa.array(values.astype(values.dtype.newbyteorder("=")).tolist(), pa.string())
    if kind == "f" and values.dtype.itemsize not in (4, 8):
        values = values.astype(np.float32 if values.dtype.itemsize == 2 else np.float64)
    return pa.array(values.astype(values.dtype.newbyteorder("="), copy=False))
