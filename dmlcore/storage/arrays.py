"""Validated reading and aligned writing of the .npz files in a run directory.

All headers are compared with a schema before any array is read. An array of an inconsistent shape, or one that claims
to be larger than its file, raises Unreadable with a message for the user. Uncompressed float and int64 arrays of at
least MIN_MAPPED_BYTES are memory-mapped instead of being copied into the memory of the process. Files are replaced and
never modified (`atomic_files.replace`), so a mapped array does not change.
"""

from __future__ import annotations

import math
import mmap
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from dmlcore.storage import atomic_files
from dmlcore.typing import Array

MAX_BYTES = 2**34  # maximum size of a file, and of an array after decompression, in bytes
MAX_MAGNITUDE = 1e18  # largest absolute value accepted in a float array; its square is still finite in float32
MAX_INTEGER = 2**31  # sample numbers and steps
MAX_CLASSES = 2**22
MIN_MAPPED_BYTES = 2**26  # smallest size in bytes of an array that is memory-mapped
CHUNK = 2**22  # bytes hashed for the CRC, or values checked for their range, at a time
ALIGNED = 64  # alignment of arrays in bytes, required to memory-map them


class Unreadable(RuntimeError):
    """Error for a damaged array file; the message names the file, the fault and the remedy."""


@dataclass(frozen=True)
class ArraySpec:
    """Required dtype and shape of one array in an .npz file.

    A letter in `shape` stands for the same size wherever it occurs in the schema.

    Attributes:
        kinds: Allowed dtype kinds, as in `numpy.dtype.kind`.
        shape: Size of each dimension, as a number or a letter.
        nan: Allow NaN for undefined values.
        least: Lower bound of integers (inclusive).
        below: Upper bound of integers (exclusive).
        optional: Allow the array to be missing.
    """

    kinds: str
    shape: tuple[str | int, ...]
    nan: bool = False
    least: int = 0
    below: int = MAX_INTEGER
    optional: bool = False


Schema = Mapping[str, ArraySpec]
INTEGERS, FLOATS, TEXT = "iu", "f", "U"
EMBEDDINGS: Schema = {
    "embeddings": ArraySpec(FLOATS, ("n", "D")),
    "labels": ArraySpec(INTEGERS, ("n",), below=MAX_CLASSES),
    "indices": ArraySpec(INTEGERS, ("n",)),
    "is_gallery": ArraySpec("b", ("n",), optional=True),
    "content": ArraySpec(INTEGERS, ("n", 8), optional=True),
    "class_labels": ArraySpec(INTEGERS, ("C",), below=MAX_CLASSES, optional=True),
    "class_queries": ArraySpec(INTEGERS, ("C",), optional=True),
    "class_map_at_r": ArraySpec(FLOATS, ("C",), nan=True, optional=True),
    "class_recall_at_1": ArraySpec(FLOATS, ("C",), nan=True, optional=True),
}


def read(path: Path, schema: Schema, *names: str, remedy: str, **sizes: int) -> dict[str, Array]:
    """Read and validate arrays from an .npz file.

    Args:
        path: The .npz file.
        schema: Requirements for the arrays. Presence, dtype and shape are checked for all of them, values only for
            those returned.
        names: Names of the arrays to return; missing ones are omitted. Without names, all arrays of the schema are
            returned.
        remedy: Advice for the user, appended to error messages; without a full stop.
        sizes: Required sizes for letters in the shapes of the schema.

    Returns:
        Arrays by name; integers as int64.

    Raises:
        Unreadable: The file is damaged, or one of these checks fails.
    """
    try:
        with atomic_files.open_regular(path, MAX_BYTES) as file, zipfile.ZipFile(file) as archive:
            there = _validate_headers(archive, schema, dict(sizes))
            return {name: _load(archive, name, schema[name]) for name in names or there if name in there}
    except Exception as error:  # a truncated or forged archive can raise almost any exception, including MemoryError
        raise Unreadable(f"The file {_short_name(path)} cannot be read ({_describe(error)}). {remedy}.") from None


def _validate_headers(archive: zipfile.ZipFile, schema: Schema, sizes: dict[str, int]) -> list[str]:
    """Return the names of the schema's arrays in the archive; raises ValueError if a header violates the schema."""
    members = {info.filename: info for info in archive.infolist()}
    differences = []
    for name, form in schema.items():
        info = members.get(f"{name}.npy")
        if info is None:
            if not form.optional:
                raise ValueError(f"the array {name} is missing")
            continue
        with archive.open(info) as member:
            shape, _, dtype = _header(member)
        if dtype.kind not in form.kinds or len(shape) != len(form.shape):
            raise ValueError(f"{name} is {_describe_type(dtype, shape)}")
        for size, wanted in zip(shape, form.shape, strict=True):
            expected = sizes.setdefault(wanted, size) if isinstance(wanted, str) else wanted
            if size < 0:
                raise ValueError(f"{name} has a negative dimension, {size:,}")
            if size != expected:
                raise ValueError(f"{name} has a dimension of {size:,} instead of {expected:,}")
        if not math.prod(shape) * dtype.itemsize <= min(info.file_size, MAX_BYTES):
            raise ValueError(f"{name} is declared as {_describe_type(dtype, shape)}, but has {info.file_size:,} bytes")
        differences.append(name)
    return differences


def _header(member: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = npy.read_magic(member)
    read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = read_header(member)
    return shape, fortran, dtype


@dataclass(frozen=True)
class Streamed:
    """Array (n, D) that `save` writes in chunks, so that it never is in memory as a whole; used once.

    Attributes:
        shape: Shape of the whole array.
        dtype: Data type of the array in the file.
        chunks: Consecutive rows, (m, D) each, n in total.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    chunks: Iterable[Array]

    def __len__(self) -> int:
        return self.shape[0]

    def write(self, member: IO[bytes]) -> None:
        """Write header and values in the .npy format."""
        header = {"descr": npy.dtype_to_descr(self.dtype), "fortran_order": False, "shape": self.shape}
        npy.write_array_header_1_0(member, header)
        for chunk in self.chunks:
            member.write(np.ascontiguousarray(chunk, self.dtype).data.cast("B"))


def save(file: IO[bytes], **content: Array | Streamed) -> None:
    """Write arrays as an uncompressed .npz file without pickling, each aligned to a multiple of ALIGNED bytes."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, values in content.items():
            info = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
            # offset of the archive member's data without padding: after the local header (30 bytes), the file name, the
            # zip64 extra field (20 bytes) and the header of the padding field (4 bytes)
            fixed = file.tell() + 30 + len(info.filename) + 20 + 4
            padding = -fixed % ALIGNED
            info.extra = struct.pack("<HH", 0xD935, padding) + bytes(padding)
            with archive.open(info, "w", force_zip64=True) as member:
                if isinstance(values, Streamed):
                    values.write(member)
                else:
                    npy.write_array(member, np.asanyarray(values), allow_pickle=False)


def _load(archive: zipfile.ZipFile, name: str, form: ArraySpec) -> Array:
    values = _map(archive, name)
    if values is None:
        with archive.open(f"{name}.npy") as member:
            values = npy.read_array(member, allow_pickle=False)
            if member.read(1):  # reading to the end verifies the CRC of the archive member
                raise ValueError(f"{name} is longer than its header says")
    if values.dtype.kind in INTEGERS:
        if values.size and not form.least <= values.min() <= values.max() < form.below:
            raise ValueError(
                f"{name} has values from {values.min()} to {values.max()}, expected {form.least} to {form.below - 1}"
            )
        return values.astype(np.int64, copy=False)
    if values.dtype.kind == FLOATS:
        values = values.astype(values.dtype.newbyteorder("="), copy=False)
        flat = values.reshape(-1)
        for start in range(0, flat.size, CHUNK):
            part = flat[start : start + CHUNK]
            fits = np.isfinite(part) | (form.nan & np.isnan(part))
            if part.dtype.itemsize > 2:  # float16 values cannot exceed MAX_MAGNITUDE
                fits &= ~(np.abs(part) > MAX_MAGNITUDE)
            if not fits.all():
                raise ValueError(
                    f"{name} must contain numbers up to {MAX_MAGNITUDE:g} in magnitude, got {part[~fits][0]:g}"
                )
    return values


def _map(archive: zipfile.ZipFile, name: str) -> Array | None:
    """Return an array as a copy-on-write memory map, after verifying its CRC.

    Returns None if the array is smaller than MIN_MAPPED_BYTES, compressed or encrypted, or if it needs conversion.
    """
    info = archive.getinfo(f"{name}.npy")
    if info.file_size < MIN_MAPPED_BYTES or info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
        return None
    with archive.open(info) as member:  # opening also compares the name with that in the local header
        shape, fortran, dtype = _header(member)
        begin = member.tell()
    file = archive.fp
    assert file is not None
    file.seek(info.header_offset)
    name_length, extra_length = struct.unpack("<26x2H", file.read(30))
    start = info.header_offset + 30 + name_length + extra_length
    size = math.prod(shape) * dtype.itemsize
    if begin + size != info.file_size:
        raise ValueError(f"{name} is longer than its header says")
    as_it_is = dtype.isnative and not fortran and (start + begin) % dtype.itemsize == 0
    if not as_it_is or (dtype.kind != FLOATS and dtype != np.int64):
        return None
    content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    if start + info.file_size > len(content):
        raise ValueError("the file is truncated")
    checksum = 0
    with memoryview(content) as view:
        for at in range(start, start + info.file_size, CHUNK):
            checksum = zlib.crc32(view[at : min(at + CHUNK, start + info.file_size)], checksum)
    if checksum != info.CRC:
        raise ValueError(f"{name} is damaged (wrong CRC)")
    values: Array = np.frombuffer(content, dtype, math.prod(shape), start + begin).reshape(shape)
    return values


def _describe_type(dtype: np.dtype[Any], shape: tuple[int, ...]) -> str:
    return f"{dtype} {' x '.join(map(str, shape)) or 'alone'}"


def _short_name(path: Path) -> str:
    """Return the file name for messages; a long stem, such as a digest, is cut to 12 characters."""
    stem, *more = path.name.split(".")
    return ".".join([stem if len(stem) < 20 else f"{stem[:12]}…", *more])


def _describe(error: Exception) -> str:
    return str(error) or type(error).__name__
