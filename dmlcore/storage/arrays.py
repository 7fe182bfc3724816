"""Arrays of the .npz files in a run directory, read in one place: what their headers say is compared before a byte of
them is, so that arrays which do not fit each other, or claim more than the file holds, are an error with a sentence.

Arrays of MAPPED bytes and more that are stored as they are (float, or int64) are memory-mapped: a million embeddings
take no memory of the process's own. Files are replaced, never written into (`atomic_files.replace`), so a map stays
whole.
"""

from __future__ import annotations

import math
import mmap
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from dmlcore.storage import atomic_files
from dmlcore.typing import Array

MOST = 2**34  # bytes of a file, and of an array once it is unpacked
LARGEST = 1e18  # of a number: its square is still finite in float32
MOST_INTEGER = 2**31  # samples, steps
MOST_CLASSES = 2**22
MAPPED = 2**26  # bytes from which an array is mapped
PART = 2**22  # numbers of a mapped array that are looked at together
ALIGNED = 64  # bytes: every array of `save` begins at a multiple, so that any may be mapped


class Unreadable(RuntimeError):
    """A file of arrays that is damaged; the message says which, what is wrong and what to do."""


@dataclass(frozen=True)
class Of:
    """What an array must be. Equal letters in the shapes of a schema stand for equal sizes.

    kinds: of its dtype, as numpy abbreviates them; nan: whether some values may be undefined; least, below: bounds
    of its integers.
    """

    kinds: str
    shape: tuple[str | int, ...]
    nan: bool = False
    least: int = 0
    below: int = MOST_INTEGER
    optional: bool = False


Schema = Mapping[str, Of]
INTEGERS, FLOATS, TEXT = "iu", "f", "U"
EMBEDDINGS: Schema = {
    "embeddings": Of(FLOATS, ("n", "D")),
    "labels": Of(INTEGERS, ("n",), below=MOST_CLASSES),
    "indices": Of(INTEGERS, ("n",)),
    "is_gallery": Of("b", ("n",), optional=True),
    "content": Of(INTEGERS, ("n", 8), optional=True),
    "class_labels": Of(INTEGERS, ("C",), below=MOST_CLASSES, optional=True),
    "class_queries": Of(INTEGERS, ("C",), optional=True),
    "class_map_at_r": Of(FLOATS, ("C",), nan=True, optional=True),
    "class_recall_at_1": Of(FLOATS, ("C",), nan=True, optional=True),
}


def read(path: Path, schema: Schema, *names: str, remedy: str, **sizes: int) -> dict[str, Array]:
    """The arrays of these names (none: all) that are there, integers as int64; raises Unreadable.

    All arrays of the schema are compared, whichever are wanted. sizes: what is known of the letters of its shapes.
    remedy: what to do, as a sentence without its full stop.
    """
    try:
        with atomic_files.regular(path, MOST) as file, zipfile.ZipFile(file) as archive:
            there = _compared(archive, schema, dict(sizes))
            return {name: _loaded(archive, name, schema[name]) for name in names or there if name in there}
    except Exception as error:  # a cut or forged archive raises nearly anything, MemoryError included
        raise Unreadable(f"The file {_called(path)} cannot be read ({_words(error)}). {remedy}.") from None


def _compared(archive: zipfile.ZipFile, schema: Schema, sizes: dict[str, int]) -> list[str]:
    """Names of the arrays that are there; raises ValueError if they are not as the schema says."""
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
            raise ValueError(f"{name} is {_type(dtype, shape)}")
        for size, wanted in zip(shape, form.shape, strict=True):
            expected = sizes.setdefault(wanted, size) if isinstance(wanted, str) else wanted
            if size != expected or size < 0:
                raise ValueError(f"{size:,} of {name} where {expected:,} are due")
        if not math.prod(shape) * dtype.itemsize <= min(info.file_size, MOST):
            raise ValueError(f"{name} claims to be {_type(dtype, shape)} in {info.file_size:,} bytes")
        differences.append(name)
    return differences


def _header(member: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = npy.read_magic(member)
    read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = read_header(member)
    return shape, fortran, dtype


def save(file: IO[bytes], **content: Array) -> None:
    """Write arrays as np.savez does, nothing pickled, each at a multiple of ALIGNED bytes."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, values in content.items():
            info = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
            fixed = file.tell() + 30 + len(info.filename) + 20 + 4  # header, and what says the sizes of large files
            padding = -fixed % ALIGNED
            info.extra = struct.pack("<HH", 0xD935, padding) + bytes(padding)
            with archive.open(info, "w", force_zip64=True) as member:
                npy.write_array(member, np.asanyarray(values), allow_pickle=False)


def _loaded(archive: zipfile.ZipFile, name: str, form: Of) -> Array:
    values = _mapped(archive, name)
    if values is None:
        with archive.open(f"{name}.npy") as member:
            values = npy.read_array(member, allow_pickle=False)
            if member.read(1):  # at the end the checksum of the archive is compared
                raise ValueError(f"{name} is longer than it says")
    if values.dtype.kind in INTEGERS:
        if values.size and not form.least <= values.min() <= values.max() < form.below:
            raise ValueError(f"{name} holds {values.min()} to {values.max()}")
        return values.astype(np.int64, copy=False)
    if values.dtype.kind == FLOATS:
        values = values.astype(values.dtype.newbyteorder("="), copy=False)
        flat = values.reshape(-1)
        for start in range(0, flat.size, PART):
            part = flat[start : start + PART]
            fits = np.isfinite(part) | (form.nan & np.isnan(part))
            if part.dtype.itemsize > 2:  # float16 ends long before
                fits &= ~(np.abs(part) > LARGEST)
            if not fits.all():
                raise ValueError(f"{name} must hold numbers, and holds {part[~fits][0]:g}")
    return values


def _mapped(archive: zipfile.ZipFile, name: str) -> Array | None:
    """A large array in place, its checksum compared; what is written to it stays in memory.

    None for one that is small or must be converted.
    """
    info = archive.getinfo(f"{name}.npy")
    if info.file_size < MAPPED or info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
        return None
    with archive.open(info) as member:  # compares the name with that of the local header
        shape, fortran, dtype = _header(member)
        begin = member.tell()
    file = archive.fp
    assert file is not None
    file.seek(info.header_offset)
    name_length, extra_length = struct.unpack("<26x2H", file.read(30))
    start = info.header_offset + 30 + name_length + extra_length
    size = math.prod(shape) * dtype.itemsize
    if begin + size != info.file_size:
        raise ValueError(f"{name} is longer than it says")
    as_it_is = dtype.isnative and not fortran and (start + begin) % dtype.itemsize == 0
    if not as_it_is or (dtype.kind != FLOATS and dtype != np.int64):
        return None
    content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    if start + info.file_size > len(content):
        raise ValueError("the file is cut")
    checksum = 0
    with memoryview(content) as view:
        for at in range(start, start + info.file_size, PART):
            checksum = zlib.crc32(view[at : min(at + PART, start + info.file_size)], checksum)
    if checksum != info.CRC:
        raise ValueError(f"{name} is not as it was written")
    values: Array = np.frombuffer(content, dtype, math.prod(shape), start + begin).reshape(shape)
    return values


def _type(dtype: np.dtype[Any], shape: tuple[int, ...]) -> str:
    return f"{dtype} {' x '.join(map(str, shape)) or 'alone'}"


def _called(path: Path) -> str:
    """Its name; a digest is told by its beginning."""
    stem, *more = path.name.split(".")
    return ".".join([stem if len(stem) < 20 else f"{stem[:12]}…", *more])


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
