"""Index of a data set in shards, which are tar files of images; it holds byte offsets for reading any single image.

`shards.json` lists the shards and the digests of the other three files; `index.npy` has one row per sample; `keys.bin`
holds the concatenated names of the samples; `classes.json` holds the names of the classes. No file is a pickle.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from dmlcore.data.dataset import DataError, LazySequence
from dmlcore.data.printable import printable
from dmlcore.storage import atomic_files
from dmlcore.typing import Array

MANIFEST, ROWS, KEYS, CLASSES = "shards.json", "index.npy", "keys.bin", "classes.json"
LARGEST = 2**28  # maximum size in bytes of shards.json and of classes.json
OPEN = 128  # maximum number of shards that are open at the same time
AGAIN = "copy it again from its source, or pack the data set again"

ROW = np.dtype(
    [
        ("shard", "<u4"),
        ("offset", "<u8"),  # byte offset of the image content in the shard
        ("size", "<u4"),
        ("crc", "<u4"),  # CRC-32 of the image, valid if `Manifest.checked` is True
        ("key_end", "<u8"),  # end of the sample's name in keys.bin; it starts where the previous name ends
        ("label", "<u4"),
        ("train", "?"),  # True for training samples of the official image-wise split, if `Manifest.image_wise` is True
        ("gallery", "?"),
    ]
)

Count = Annotated[int, Field(ge=0, lt=2**53)]


class Shard(BaseModel):
    """Tar file of images: its name, number of samples, size in bytes, and SHA-256 ("" if unknown)."""

    model_config = ConfigDict(frozen=True)

    name: Annotated[str, Field(pattern=r"^[^/\x00]+\.tar$", max_length=255)]
    samples: Count
    size: Count
    sha256: str = ""


class Manifest(BaseModel):
    """Contents of shards.json; unknown keys written by newer releases are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    version: Literal[1] = 1
    data: str
    samples: Count
    train_classes: Count
    image_wise: bool  # True if the column `train` of the index is valid
    searched: bool  # True if the column `gallery` of the index is valid
    checked: bool  # True if `crc` is valid
    notes: tuple[str, ...] = ()
    source: str = ""  # digest that identifies the packed files; "" if other tools packed the shards
    digests: dict[str, str]  # SHA-256 by file name, for index.npy, keys.bin and classes.json
    shards: tuple[Shard, ...]


class Size(NamedTuple):
    """Number of shards of a data set, and their total size in bytes."""

    shards: int
    bytes: int

    def __str__(self) -> str:
        unit, name = next(((by, name) for by, name in ((10**9, "GB"), (10**6, "MB")) if self.bytes >= by), (1000, "kB"))
        return f"{self.shards:,} {'shard' if self.shards == 1 else 'shards'}, {self.bytes / unit:,.1f} {name}"


def is_sharded(place: Path) -> bool:
    """Return True if a folder holds a data set in shards with its index."""
    return (place / MANIFEST).is_file()


def read_manifest(place: Path) -> Manifest:
    """Return the manifest of a folder with shards; raise DataError if it is missing or damaged."""
    path = place / MANIFEST
    try:
        return Manifest.model_validate(atomic_files.read_json(path, LARGEST))
    except FileNotFoundError:
        raise DataError(f"{path} is missing; {AGAIN}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise DataError(
            f"{path} is damaged, or was written by a later release ({where}: {first['msg']}); {AGAIN}"
        ) from None
    except ValueError as error:
        raise DataError(f"{path} is damaged ({error}); {AGAIN}") from None


class ShardIndex:
    """Index of the shards in `folder`, read from the folder `place` (the same by default) and verified.

    `rows` (N,) have the dtype ROW and are memory-mapped. Raises DataError naming a shard that is missing or has another
    size than recorded, or an index file that is damaged.
    """

    def __init__(self, place: Path, folder: Path | None = None) -> None:
        self.place, self.folder = place, folder or place
        self.manifest = read_manifest(place)
        self._now = hashlib.sha256()  # becomes the `stamp`
        for name in (ROWS, KEYS, CLASSES):
            self._verify(name)
        self._stat_shards()
        self.rows = self._read_rows()
        self.class_names = self._read_class_names()
        self._keys: Array = _mapped(place / KEYS)
        self._check_bounds()
        self._descriptor = functools.lru_cache(OPEN)(_Descriptor)

    def key(self, row: int) -> str:
        """Return the name of the sample in row `row`, as in the lists of the data set."""
        begin = int(self.rows["key_end"][row - 1]) if row else 0
        return printable(os.fsdecode(self._keys[begin : int(self.rows["key_end"][row])].tobytes()))

    def shard_of(self, row: int) -> Path:
        """Return the path of the shard that contains the sample in row `row`."""
        return self.folder / self.manifest.shards[int(self.rows["shard"][row])].name

    def read(self, row: int) -> bytes:
        """Return the content of the image file in row `row`.

        The file is read, not memory-mapped, for two reasons. If a shard is truncated during use, reading raises an
        error, whereas access to mapped memory would raise a signal. Mapped pages would also count as memory of this
        process. Raises DataError naming the shard.
        """
        shard, offset, size, crc = self.rows[row].tolist()[:4]
        path = self.folder / self.manifest.shards[shard].name
        try:
            # This reference keeps the file open even if another thread evicts the descriptor from the cache.
            descriptor = self._descriptor(path)
            content = os.pread(descriptor.number, size, offset)
        except OSError as error:
            raise DataError(f"{path} cannot be read ({error}); {AGAIN}") from error
        if len(content) < size:
            raise DataError(f"{path} ends within image {self.key(row)}: it is truncated; {AGAIN}")
        if self.manifest.checked and zlib.crc32(content) != crc:
            raise DataError(f"{path} is damaged: image {self.key(row)} has changed since it was packed; {AGAIN}")
        return content

    def damaged_shards(self) -> list[tuple[str, str]]:
        """Read all shards; return (name, message) for each that is unreadable or has another SHA-256 than recorded."""
        faults = []
        for shard in self.manifest.shards:
            path = self.folder / shard.name
            try:
                with path.open("rb") as file:
                    same = not shard.sha256 or hashlib.file_digest(file, "sha256").hexdigest() == shard.sha256
                if not same:
                    faults.append((shard.name, f"{path} is damaged (wrong SHA-256); {AGAIN}"))
            except OSError as error:
                faults.append((shard.name, f"{path} cannot be read ({error}); {AGAIN}"))
        return faults

    @property
    def stamp(self) -> str:
        """Digest of the index and of the sizes and modification times of the shards."""
        return self._now.hexdigest()

    def _verify(self, name: str) -> None:
        path = self.place / name
        try:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            raise DataError(f"{path} is missing; {AGAIN}") from None
        if digest != self.manifest.digests.get(name):
            raise DataError(
                f"{path} does not match the {MANIFEST} next to it: it is damaged or from another data set; {AGAIN}"
            )
        self._now.update(digest.encode())

    def _stat_shards(self) -> None:
        for shard in self.manifest.shards:
            path = self.folder / shard.name
            try:
                status = path.stat()
            except FileNotFoundError:
                raise DataError(f"{path} with {shard.samples:,} images is missing; {AGAIN}") from None
            if status.st_size != shard.size:
                raise DataError(
                    f"{path} has {status.st_size:,} bytes instead of {shard.size:,}: truncated or altered; {AGAIN}"
                )
            self._now.update(f"{shard.name}\0{status.st_size} {status.st_mtime_ns}\n".encode())

    def _read_rows(self) -> Array:
        path = self.place / ROWS
        try:
            rows: Array = np.load(path, mmap_mode="r", allow_pickle=False)
        except Exception as error:  # a damaged header raises almost any exception, including tokenize.TokenError
            raise DataError(f"{path} is damaged ({error}); {AGAIN}") from None
        if rows.dtype != ROW or rows.shape != (self.manifest.samples,):
            raise DataError(f"{path} is not an index of {self.manifest.samples:,} samples; {AGAIN}")
        return np.asarray(rows)  # plain array view of the mapped memory, which is faster to index than np.memmap

    def _read_class_names(self) -> tuple[str, ...]:
        path = self.place / CLASSES
        try:
            return TypeAdapter(tuple[str, ...]).validate_python(atomic_files.read_json(path, LARGEST))
        except ValueError as error:
            raise DataError(f"{path} is no list of names ({str(error).splitlines()[0]}); {AGAIN}") from None

    def _check_bounds(self) -> None:
        """Raise DataError if the index refers to bytes, classes or names that do not exist."""
        rows, sizes = self.rows, np.array([shard.size for shard in self.manifest.shards], np.uint64)
        ends = np.concatenate([np.zeros(1, np.uint64), rows["key_end"]])
        inside = bool((rows["shard"] < len(sizes)).all()) and bool(
            (rows["offset"] <= sizes[rows["shard"]]).all()
            and (rows["size"] <= sizes[rows["shard"]] - rows["offset"]).all()
            and (rows["label"] < len(self.class_names)).all()
            and (ends[:-1] <= ends[1:]).all()
            and ends[-1] <= len(self._keys)
        )
        if not inside:
            raise DataError(f"{self.place / ROWS} points outside of its shards or classes; {AGAIN}")


def size_of(manifest: Manifest) -> Size:
    """Return the number and total bytes of the shards in a manifest."""
    return Size(len(manifest.shards), sum(shard.size for shard in manifest.shards))


def _mapped(path: Path) -> Array:
    return np.memmap(path, np.uint8, mode="r") if path.stat().st_size else np.empty(0, np.uint8)


class _Descriptor:
    """Open file descriptor that is closed when its last reference is dropped."""

    def __init__(self, path: Path) -> None:
        self.number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def __del__(self) -> None:
        if hasattr(self, "number"):
            os.close(self.number)


@dataclass(frozen=True)
class ShardImageStatus:
    """Size of an image in a shard; `st_mtime_ns` is not a time but a number that changes when any shard changes."""

    st_size: int
    st_mtime_ns: int


@dataclass(frozen=True, eq=False)
class ShardImage:
    """Image in a shard that can be opened like an image file."""

    shards: ShardIndex
    row: int

    def open(self, mode: Literal["rb"], /) -> io.BytesIO:
        return io.BytesIO(self.shards.read(self.row))

    def stat(self) -> ShardImageStatus:
        return ShardImageStatus(int(self.shards.rows["size"][self.row]), int(self.shards.stamp[:15], 16))

    def __str__(self) -> str:
        return f"{self.shards.key(self.row)} in {self.shards.shard_of(self.row)}"


class ShardImages(LazySequence[int, ShardImage]):
    """Sequence of the images in a shard index at the given row numbers, by default all."""

    def __init__(self, shards: ShardIndex, rows: Sequence[int] | None = None) -> None:
        super().__init__(range(len(shards.rows)) if rows is None else rows, functools.partial(ShardImage, shards))
        self.shards = shards
