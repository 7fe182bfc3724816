"""Arrays of the .npz files in a run directory, read in one place: what their headers say is compared before a byte of
them is, so that arrays which do not fit each other, or claim more than the file holds, are an error with a sentence.
"""

from __future__ import annotations

import math
import zipfile
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
            shape, dtype = _header(member)
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


def _header(member: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = npy.read_magic(member)
    read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read_header(member)
    return shape, dtype


def _loaded(archive: zipfile.ZipFile, name: str, form: Of) -> Array:
    with archive.open(f"{name}.npy") as member:
        values: Array = npy.read_array(member, allow_pickle=False)
        if member.read(1):  # at the end the checksum of the archive is compared
            raise ValueError(f"{name} is longer than it says")
    if values.dtype.kind in INTEGERS:
        if values.size and not form.least <= values.min() <= values.max() < form.below:
            raise ValueError(f"{name} holds {values.min()} to {values.max()}")
        return values.astype(np.int64)
    if values.dtype.kind == FLOATS:
        values = values.astype(values.dtype.newbyteorder("="), copy=False)
        fits = np.isfinite(values) | (form.nan & np.isnan(values))
        if values.dtype.itemsize > 2:  # float16 ends long before
            fits &= ~(np.abs(values) > LARGEST)
        if not fits.all():
            raise ValueError(f"{name} must hold numbers, and holds {values[~fits].flat[0]:g}")
    return values


def _type(dtype: np.dtype[Any], shape: tuple[int, ...]) -> str:
    return f"{dtype} {' x '.join(map(str, shape)) or 'alone'}"


def _called(path: Path) -> str:
    """Its name; a digest is told by its beginning."""
    stem, *more = path.name.split(".")
    return ".".join([stem if len(stem) < 20 else f"{stem[:12]}…", *more])


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
