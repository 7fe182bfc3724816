"""MATLAB files (.mat, version 5) of annotations: numbers, words and structs of them; anything else is refused."""

from __future__ import annotations

import struct
import warnings
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dmlcore.data.dataset import DataError, Description

MAX_BYTES = 64 * 2**20  # unpacked; the largest official annotations have 6 MiB
_HEADER = 128
_COMPRESSED = 15  # data type of a zlib-packed element


class Variables:
    """The variables of a .mat file; each is asked for by what it must be. Errors name file, variable and row."""

    def __init__(self, path: Path, values: Mapping[str, Any], info: Description) -> None:
        self.path, self._values, self._info = path, values, info

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def integers(self, name: str) -> NDArray[np.int64]:
        """Return the variable (N,) as int64, so that small integers of the file cannot wrap around in arithmetic."""
        return self._integers(name, np.atleast_1d(self._value(name)))

    def words(self, name: str) -> tuple[str, ...]:
        """Return the cell array of words `name`."""
        return self._words(name, np.atleast_1d(self._value(name)))

    def has_field(self, name: str, field: str) -> bool:
        """Say whether the struct array `name` has a field."""
        return field in (self._value(name).dtype.names or ())

    def field_integers(self, name: str, field: str) -> NDArray[np.int64]:
        """Return a field of the struct array `name` (N,) as int64."""
        return self._integers(f"{name}.{field}", self._field(name, field))

    def field_words(self, name: str, field: str) -> tuple[str, ...]:
        """Return a field of the struct array `name` as words."""
        return self._words(f"{name}.{field}", self._field(name, field))

    def _value(self, name: str) -> Any:
        if name not in self._values:
            there = ", ".join(sorted(self._values)) or "none"
            raise DataError(f"{self.path} lacks the variable {name!r} (it has {there}); restore it from {self._url}")
        value = self._values[name]
        if type(value) not in (np.ndarray, str, int, float):  # MatlabObject, MatlabFunction, MatlabOpaque
            raise DataError(f"{self.path}: {name} is a {type(value).__name__}, no array; restore it from {self._url}")
        return np.asarray(value)

    def _field(self, name: str, field: str) -> NDArray[Any]:
        if not self.has_field(name, field):
            raise DataError(f"{self.path}: {name} has no field {field!r}; restore it from {self._url}")
        return np.atleast_1d(self._value(name)[field])

    def _integers(self, name: str, values: NDArray[Any]) -> NDArray[np.int64]:
        self._require_row(name, values)
        if values.dtype.kind not in "iufbO":
            raise self._unexpected(name, 0, "a whole number", values)
        whole = np.empty(len(values), dtype=np.int64)
        for row, value in enumerate(values.tolist()):
            if not isinstance(value, int | float) or not abs(value) < 2**53 or value != int(value):
                raise self._unexpected(name, row, "a whole number", value)
            whole[row] = int(value)
        return whole

    def _words(self, name: str, values: NDArray[Any]) -> tuple[str, ...]:
        self._require_row(name, values)
        for row, value in enumerate(values.tolist()):
            if not isinstance(value, str) or not value.strip():
                raise self._unexpected(name, row, "a word", value)
        return tuple(value.strip() for value in values.tolist())

    def _require_row(self, name: str, values: NDArray[Any]) -> None:
        if values.ndim != 1 or not len(values):
            raise DataError(f"{self.path}: {name} has the shape {values.shape} instead of one row of entries")

    def _unexpected(self, name: str, row: int, expected: str, value: object) -> DataError:
        said = " ".join(repr(value).split())[:80]
        return DataError(f"{self.path}: {name}, entry {row + 1}: expected {expected}, got {said}")

    @property
    def _url(self) -> str:
        return self._info.url


def read(path: Path, info: Description) -> Variables:
    """Read a .mat file of the data set `info`; nothing in it is run. Raises DataError naming the file."""
    from scipy.io import loadmat

    if not path.is_file():
        raise DataError(f"{path} is missing; restore it from {info.url}")
    _require_whole(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what the checks of Variables say better
            values = loadmat(path, squeeze_me=True, struct_as_record=True, chars_as_strings=True)
    except Exception as error:  # the parser raises nearly anything when a file is forged
        raise DataError(f"{path} is not a readable .mat file ({error}); restore it from {info.url}") from error
    return Variables(path, {name: value for name, value in values.items() if not name.startswith("__")}, info)


def _require_whole(path: Path) -> None:
    """Refuse a file that is cut, damaged where it is packed, or unpacks to too much, before the parser sees it."""
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise DataError(f"{path} has {size:,} bytes, over {MAX_BYTES:,}; it is no file of annotations")
    content = path.read_bytes()
    order = {b"IM": "<", b"MI": ">"}.get(content[126:_HEADER])
    if order is None:
        kind = "of version 7.3 (HDF5)" if content[:64].startswith(b"MATLAB 7.3") else "cut short or of another kind"
        raise DataError(f"{path} is no .mat file of version 5 but {kind}; restore the original")
    position, left = _HEADER, MAX_BYTES
    while position < len(content):
        if position + 8 > len(content):
            raise DataError(f"{path} is cut short at byte {len(content):,}; restore the original")
        kind, length = struct.unpack(order + "II", content[position : position + 8])
        begin, position = position + 8, position + 8 + length
        if position > len(content):
            raise DataError(f"{path} is cut short at byte {len(content):,}; restore the original")
        left -= _unpacked_bytes(path, content[begin:position], left) if kind == _COMPRESSED else length


def _unpacked_bytes(path: Path, packed: bytes, ceiling: int) -> int:
    """Unpack to the end, where the checksum is, and return how many bytes came out."""
    unpacker = zlib.decompressobj()
    try:
        count = len(unpacker.decompress(packed, ceiling))
    except zlib.error as error:
        raise DataError(f"{path} is damaged ({error}); restore the original") from error
    if not unpacker.eof:
        reason = f"unpacks to more than {MAX_BYTES:,} bytes" if count >= ceiling else "is cut short"
        raise DataError(f"{path} {reason}; restore the original")
    return count
