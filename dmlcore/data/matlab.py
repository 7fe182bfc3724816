"""MATLAB files (.mat, version 5) of annotations: numbers, words, cells and structs of them; all else is refused.

scipy.io.loadmat takes the whole process down (segmentation fault) when some bytes of a file are damaged, so the little
that annotations need is read here, every length checked; the tests compare the two on undamaged files.
Source: MathWorks, MAT-File Format (2023), chapter 1, Level 5.
"""

from __future__ import annotations

import math
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dmlcore.data.dataset import DataError, Description

MAX_BYTES = 64 * 2**20  # unpacked; the largest official annotations have 6 MiB
_HEADER = 128
_MATRIX, _COMPRESSED = 14, 15  # data types of elements, as are these two:
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_WORDS = {1: "ascii", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}
_CELL, _STRUCT, _CHAR, _DOUBLE, _UINT64 = 1, 2, 4, 6, 15  # classes of matrices; numbers are 6 to 15
_COMPLEX = 0x0800


class _MalformedError(ValueError):
    """What is wrong, for the message of a DataError."""


@dataclass(frozen=True)
class _Matrix:
    """The header of a matrix, and where its content lies in the bytes."""

    kind: int
    shape: tuple[int, ...]
    name: str
    is_complex: bool
    begin: int
    end: int

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class Variables:
    """The variables of a .mat file; each is asked for by what it must be. Errors name file, variable and entry."""

    def __init__(self, path: Path, info: Description) -> None:
        self.path, self._info = path, info
        self._variables: dict[str, tuple[_Bytes, _Matrix]] = {}
        self._columns: dict[str, dict[str, list[tuple[int, int]]]] = {}  # of the struct arrays asked for so far

    def integers(self, name: str) -> NDArray[np.int64]:
        """Return the variable (N,) as int64, so that small integers of the file cannot wrap around in arithmetic."""
        content, matrix = self._variable(name)
        try:
            return _whole(content.numbers(matrix))
        except _MalformedError as error:
            raise self._error(name, error) from error

    def words(self, name: str) -> tuple[str, ...]:
        """Return the cell array of words `name`."""
        content, matrix = self._variable(name)
        try:
            cells = content.cells(matrix)
        except _MalformedError as error:
            raise self._error(name, error) from error
        return tuple(self._word(name, row, content, cell) for row, cell in enumerate(cells, start=1))

    def has_field(self, name: str, field: str) -> bool:
        """Say whether the struct array `name` has a field."""
        return field in self._fields(name)

    def field_integers(self, name: str, field: str) -> NDArray[np.int64]:
        """Return a field of the struct array `name` (N,) as int64."""
        content, _ = self._variable(name)
        return np.array(
            [self._integer(f"{name}.{field}", row, content, at) for row, at in self._column(name, field)], np.int64
        )

    def field_words(self, name: str, field: str) -> tuple[str, ...]:
        """Return a field of the struct array `name` as words."""
        content, _ = self._variable(name)
        return tuple(self._word(f"{name}.{field}", row, content, at) for row, at in self._column(name, field))

    def add(self, content: _Bytes, begin: int, end: int) -> None:
        """Take in the matrix that lies between two positions."""
        matrix = content.matrix(begin, end)
        self._variables[matrix.name] = (content, matrix)

    def _variable(self, name: str) -> tuple[_Bytes, _Matrix]:
        if name not in self._variables:
            there = ", ".join(sorted(self._variables)) or "none"
            raise DataError(
                f"{self.path} lacks the variable {name!r} (it has {there}); restore it from {self._info.url}"
            )
        return self._variables[name]

    def _fields(self, name: str) -> dict[str, list[tuple[int, int]]]:
        if name not in self._columns:
            content, matrix = self._variable(name)
            try:
                self._columns[name] = content.fields(matrix)
            except _MalformedError as error:
                raise self._error(name, error) from error
        return self._columns[name]

    def _column(self, name: str, field: str) -> list[tuple[int, tuple[int, int]]]:
        fields = self._fields(name)
        if field not in fields:
            raise self._error(name, f"no field {field!r}, but {', '.join(fields) or 'none'}")
        return list(enumerate(fields[field], start=1))

    def _integer(self, name: str, row: int, content: _Bytes, at: tuple[int, int]) -> int:
        try:
            values = _whole(content.numbers(content.matrix(*at)))
            if len(values) != 1:
                raise _MalformedError(f"{len(values)} numbers instead of one")
        except _MalformedError as error:
            raise self._error(f"{name}, entry {row}", error) from error
        return int(values[0])

    def _word(self, name: str, row: int, content: _Bytes, at: tuple[int, int]) -> str:
        try:
            return content.word(content.matrix(*at))
        except _MalformedError as error:
            raise self._error(f"{name}, entry {row}", error) from error

    def _error(self, where: str, what: object) -> DataError:
        return DataError(f"{self.path}: {where}: {what}; restore it from {self._info.url}")


def read(path: Path, info: Description) -> Variables:
    """Read a .mat file of the data set `info`; nothing in it is run. Raises DataError naming the file."""
    if not path.is_file():
        raise DataError(f"{path} is missing; restore it from {info.url}")
    if (size := path.stat().st_size) > MAX_BYTES:
        raise DataError(f"{path} has {size:,} bytes, over {MAX_BYTES:,}; it is no file of annotations")
    raw = path.read_bytes()
    order = {b"IM": "<", b"MI": ">"}.get(raw[126:_HEADER])
    if order is None:
        kind = "of version 7.3 (HDF5)" if raw[:64].startswith(b"MATLAB 7.3") else "cut short or of another kind"
        raise DataError(f"{path} is no .mat file of version 5 but {kind}; restore it from {info.url}")
    variables = Variables(path, info)
    try:
        _take(variables, _Bytes(raw, order), _HEADER, MAX_BYTES)
    except _MalformedError as error:
        raise DataError(f"{path} is damaged: {error}; restore it from {info.url}") from error
    return variables


def _take(variables: Variables, content: _Bytes, position: int, ceiling: int) -> None:
    """Take in the elements from `position` to the end, packed ones unpacked; together they stay below the ceiling."""
    while position < len(content.raw):
        kind, begin, end, position = content.element(position, len(content.raw), is_padded=False)
        if kind == _MATRIX:
            variables.add(content, begin, end)
            position = min(begin + -(-(end - begin) // 8) * 8, len(content.raw))
        elif kind == _COMPRESSED:
            unpacked = _Bytes(_unpacked(content.raw[begin:end], ceiling), content.order)
            ceiling -= len(unpacked.raw)
            inner, first, last, _ = unpacked.element(0, len(unpacked.raw))
            if inner == _MATRIX:
                variables.add(unpacked, first, last)


def _unpacked(packed: bytes, ceiling: int) -> bytes:
    """Unpack to the end, where the checksum is."""
    unpacker = zlib.decompressobj()
    try:
        content = unpacker.decompress(packed, ceiling)
    except zlib.error as error:
        raise _MalformedError(str(error)) from error
    if not unpacker.eof:
        raise _MalformedError(f"unpacks to more than {MAX_BYTES:,} bytes" if len(content) >= ceiling else "cut short")
    return content


@dataclass(frozen=True, eq=False)
class _Bytes:
    """The bytes of a file, or unpacked ones, with their byte order; positions are checked against an end."""

    raw: bytes
    order: str

    def element(self, position: int, end: int, *, is_padded: bool = True) -> tuple[int, int, int, int]:
        """Return data type, begin, end of the element at `position`, and where the next one begins."""
        if position + 8 > end:
            raise _MalformedError(f"ends at byte {end:,}, within an element")
        kind, length = struct.unpack_from(self.order + "II", self.raw, position)
        if kind >> 16:  # up to four bytes, inside the tag
            kind, length, begin, following = kind & 0xFFFF, kind >> 16, position + 4, position + 8
            if length > 4:
                raise _MalformedError(f"an element of {length} bytes in a tag for four, at byte {position:,}")
        else:
            begin = position + 8
            following = begin + (-(-length // 8) * 8 if is_padded else length)
        if begin + length > end:
            raise _MalformedError(f"ends at byte {end:,}, but an element goes on to {begin + length:,}")
        return kind, begin, begin + length, following

    def matrix(self, begin: int, end: int) -> _Matrix:
        """Return the matrix whose content lies between two positions; one without content is empty."""
        if begin == end:
            return _Matrix(_DOUBLE, (0, 0), "", False, begin, end)
        _, flags, flags_end, position = self.element(begin, end)
        if flags_end - flags != 8:
            raise _MalformedError(f"no flags of a matrix at byte {flags:,}")
        (word,) = struct.unpack_from(self.order + "I", self.raw, flags)
        _, dimensions, dimensions_end, position = self.element(position, end)
        count, rest = divmod(dimensions_end - dimensions, 4)
        shape = struct.unpack_from(f"{self.order}{count}i", self.raw, dimensions)
        if rest or not 2 <= count <= 8 or min(shape) < 0:
            raise _MalformedError(f"no shape of a matrix at byte {dimensions:,}")
        _, name, name_end, position = self.element(position, end)
        text = self.raw[name:name_end].decode("ascii", "replace")
        return _Matrix(word & 0xFF, shape, text, bool(word & _COMPLEX), position, end)

    def numbers(self, matrix: _Matrix) -> NDArray[np.float64 | np.int64]:
        """Return the numbers of a row or column."""
        if not _DOUBLE <= matrix.kind <= _UINT64 or matrix.is_complex:
            raise _MalformedError("no real numbers")
        self._require_row(matrix)
        kind, begin, end, _ = self.element(matrix.begin, matrix.end)
        if kind not in _NUMBERS or end - begin != matrix.size * np.dtype(_NUMBERS[kind]).itemsize:
            raise _MalformedError(f"{end - begin} bytes of type {kind} for {matrix.size} numbers")
        return np.frombuffer(self.raw[begin:end], dtype=self.order + _NUMBERS[kind])

    def word(self, matrix: _Matrix) -> str:
        """Return the word of a row of characters, without the white space around it."""
        if matrix.kind != _CHAR:
            raise _MalformedError("no word")
        self._require_row(matrix)
        kind, begin, end, _ = self.element(matrix.begin, matrix.end)
        codec = _WORDS.get(kind, "")
        suffix = {"<": "-le", ">": "-be"}[self.order] if codec in ("utf-16", "utf-32") else ""
        try:
            word = self.raw[begin:end].decode(codec + suffix).strip() if codec else ""
        except UnicodeDecodeError as error:
            raise _MalformedError(f"characters that are not {codec}") from error
        if not word:
            raise _MalformedError("no word")
        return word

    def cells(self, matrix: _Matrix) -> list[tuple[int, int]]:
        """Return begin and end of the matrix in each cell."""
        if matrix.kind != _CELL:
            raise _MalformedError("no cells")
        return self._matrices(matrix, matrix.begin, matrix.size)

    def fields(self, matrix: _Matrix) -> dict[str, list[tuple[int, int]]]:
        """Return field -> begin and end of the matrix in each entry of a struct array."""
        if matrix.kind != _STRUCT:
            raise _MalformedError("no struct array")
        _, begin, end, position = self.element(matrix.begin, matrix.end)
        if end - begin != 4:
            raise _MalformedError(f"no length of field names at byte {begin:,}")
        (length,) = struct.unpack_from(self.order + "i", self.raw, begin)
        _, begin, end, position = self.element(position, matrix.end)
        if length <= 0 or (end - begin) % length:
            raise _MalformedError(f"field names of {length} bytes in {end - begin} bytes")
        starts = range(begin, end, length)
        names = [self.raw[at : at + length].partition(b"\0")[0].decode("ascii", "replace") for at in starts]
        found = self._matrices(matrix, position, matrix.size * len(names))
        return {name: found[number :: len(names)] for number, name in enumerate(names)}

    def _matrices(self, matrix: _Matrix, position: int, count: int) -> list[tuple[int, int]]:
        self._require_row(matrix)
        if count * 8 > matrix.end - position:
            raise _MalformedError(f"{matrix.end - position:,} bytes for {count:,} entries")
        found = []
        for _ in range(count):
            kind, begin, end, position = self.element(position, matrix.end)
            if kind != _MATRIX:
                raise _MalformedError(f"an element of type {kind} instead of a matrix at byte {begin:,}")
            found.append((begin, end))
        return found

    @staticmethod
    def _require_row(matrix: _Matrix) -> None:
        if matrix.size == 0 or matrix.size != max(matrix.shape):
            raise _MalformedError(f"shape {' x '.join(map(str, matrix.shape))} instead of one row of entries")


def _whole(values: NDArray[np.float64 | np.int64]) -> NDArray[np.int64]:
    if values.dtype.kind == "f" and not (np.abs(values) < 2**53).all():  # also NaN
        raise _MalformedError("a number that is no whole number")
    whole = values.astype(np.int64)
    if wrong := np.flatnonzero(whole != values).tolist():
        raise _MalformedError(f"{values[wrong[0]]} in place {wrong[0] + 1} is no whole number")
    return whole
