"""Reading of .npz files: arrays are decompressed in blocks, their declared sizes are checked before."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmlcore.data.dataset import DataError
from dmlcore.data.embedding_sets import raw
from dmlcore.data.embedding_sets.source import SourceFile, reading
from dmlcore.data.embedding_sets.table import Vectors, VectorTable, require_dtype, require_shape
from dmlcore.typing import Array

MAX_ARRAYS = 10_000
MAX_WHOLE = 2**30  # maximum size in bytes of an array in Fortran order, which is decompressed as a whole
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # those that NumPy writes; others can expand a million-fold


@dataclass(frozen=True)
class _Member:
    """Array in a .npz file: its header, which agrees with the declared size of the archive member."""

    source: SourceFile
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran: bool

    @property
    def label(self) -> str:
        return f"{self.source.name}, array {self.name}"

    def blocks(self, rows: int) -> Iterator[Array]:
        """Yield the rows of a matrix, or the values of a one-dimensional array, in blocks of at most `rows`."""
        with (
            reading(self.source, "a .npz file"),
            self.source.open() as file,
            zipfile.ZipFile(file) as archive,
            archive.open(f"{self.name}.npy") as member,
        ):
            raw.read_header(member, self.label)
            count, inner = self.shape[0], self.shape[1:]
            step = count if self.fortran else rows
            for start in range(0, count, step):
                size = min(step, count - start)
                block = raw.read_values(member, self.dtype, size * int(np.prod(inner)))
                yield block.reshape(inner[0], count).T if self.fortran else block.reshape(size, *inner)
            if member.read(1):  # reading to the end verifies the CRC
                raise ValueError(f"the array {self.name} is longer than its header says")

    def values(self) -> Array:
        """Return all values of a one-dimensional array."""
        blocks = list(self.blocks(2**20))
        return np.concatenate(blocks) if blocks else np.empty(0, self.dtype)

    def vectors(self) -> tuple[Vectors, tuple[str, ...]]:
        """Return the array as embeddings, with notes; raise DataError unless it is a usable matrix."""
        shape = require_shape(self.shape, self.label)
        dtype, notes = require_dtype(self.dtype, self.label)
        size = shape[0] * shape[1] * self.dtype.itemsize
        if self.fortran and size > MAX_WHOLE:
            raise DataError(
                f"{self.label} is in Fortran order and takes {size:,} bytes; save it with "
                "numpy.save('embeddings.npy', numpy.ascontiguousarray(array))"
            )
        return Vectors(shape, dtype, self.label, self.blocks), notes


def read_npz(source: SourceFile, wanted: str | None) -> VectorTable:
    """Return the embeddings of a .npz file; one-dimensional arrays of N values become columns.

    Args:
        source: The file.
        wanted: Name of the array with the embeddings; None chooses the only matrix.

    Raises:
        DataError: If the archive is damaged, an array contains Python objects, or declared sizes are implausible.
    """
    with reading(source, "a .npz file"), source.open() as file, zipfile.ZipFile(file) as archive:
        members = _members(source, archive)
    return raw.table_of(members, wanted, source)


def _members(source: SourceFile, archive: zipfile.ZipFile) -> dict[str, _Member]:
    """Return the arrays of an archive by name, after checking the declared size of each one."""
    listed = archive.infolist()
    if len(listed) > MAX_ARRAYS:
        raise DataError(f"{source.name} has {len(listed):,} arrays, the limit is {MAX_ARRAYS:,}; save fewer")
    members: dict[str, _Member] = {}
    for info in listed:
        name = info.filename.removesuffix(".npy")
        if name == info.filename:
            continue  # other files in the archive
        if name in members:
            raise DataError(f"{source.name} has two arrays named {name}; save it again with different names")
        if info.compress_type not in _METHODS:
            raise DataError(
                f"{source.name}, array {name}: its compression is not supported; use numpy.savez_compressed"
            )
        source.require_plausible(info.file_size, f"the array {name}")
        with archive.open(info) as member:
            shape, fortran, dtype = raw.read_header(member, f"{source.name}, array {name}")
            offset = member.tell()
        raw.require_size(shape, dtype, info.file_size - offset, f"{source.name}, array {name}")
        members[name] = _Member(source, name, shape, dtype, fortran)
    return members
