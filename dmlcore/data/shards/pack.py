"""Atomic and resumable packing of an image data set into shards."""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import json
import logging
import os
import re
import shutil
import tarfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from dmlcore.data import published_counts
from dmlcore.data.dataset import DataError, ImageFile, Samples
from dmlcore.data.files import cache_folder as folders
from dmlcore.data.files.image_table import ImageTable
from dmlcore.data.files.locate import cache_folder
from dmlcore.data.shards import index
from dmlcore.data.shards.index import ROW, Manifest, Shard
from dmlcore.storage import atomic_files
from dmlcore.typing import Array

SHARD_BYTES = 2**28  # default size of a shard in bytes
BLOCK = tarfile.BLOCKSIZE
PLAN = "plan"  # name of the file in the staging folder with the digest from `_plan`
SAY_EVERY = 5.0  # seconds between two log messages about the progress
# matches paths whose WebDataset key is the path without its extension
_PLAIN = re.compile(r"([^/]+/)*[^./]+\.[A-Za-z]+")

log = logging.getLogger(__name__)


def pack(name: str, samples: Samples, target: Path, *, shard_bytes: int = SHARD_BYTES) -> index.Size:
    """Write the images of a data set into the new folder `target`; return the number and bytes of its shards.

    Each shard holds successive samples, each as KEY.jpg (or .png) and KEY.cls with the class number, as in WebDataset.
    Equal files give byte-identical shards. A killed process leaves the folder `target`.staging, from which the next
    call continues. An existing target is never changed.

    Args:
        name: The data set.
        samples: Result of `data.read`.
        target: Folder to create.
        shard_bytes: Approximate size of a shard in bytes.

    Raises:
        DataError: If a file cannot be packed or written; the message names it.
    """
    files, keys = samples.files, samples.keys
    if files is None or keys is None or samples.splits is not None or samples.facts:
        raise DataError(f"{name} cannot be packed, because it does not consist of individual image files")
    if isinstance(files, index.ShardImages):
        raise DataError(f"{files.shards.folder} is already packed; give the folder of the image files with --root")
    if shard_bytes < 1:
        raise DataError(f"the size of a shard must be at least one byte, got {shard_bytes}")
    sizes, plan = _plan(name, samples, files, keys, shard_bytes)
    what = "the shards"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with folders.alone(target, what), _known_to_the_sweep(target):
            if not _is_there(target, plan):
                _start_anew_unless(folders.staging_of(target), plan)
                make = _Packing(name, samples, files, keys, sizes, shard_bytes, plan)
                folders.create_folder(target, make.into)
    except OSError as error:
        raise DataError(
            f"{what} cannot be written to {target} ({error}); free some space, or choose another folder with --into"
        ) from error
    return index.size_of(index.read_manifest(target))


def notes_folder() -> Path:
    """Return the folder of note files; each contains the path of the staging folder of an unfinished packing."""
    return cache_folder() / "packing"


def leftovers() -> Iterator[tuple[Path, Path]]:
    """Yield the staging folder and the note file of each unfinished packing."""
    for note in sorted(notes_folder().glob("*")):
        with contextlib.suppress(OSError):
            staging = Path(os.fsdecode(atomic_files.read_bytes(note, 2**16)))
            if (staging / PLAN).is_file():
                yield staging, note


@contextlib.contextmanager
def _known_to_the_sweep(target: Path) -> Iterator[None]:
    staging = folders.staging_of(target.absolute())
    note = notes_folder() / hashlib.sha256(os.fsencode(staging)).hexdigest()[:16]
    note.parent.mkdir(parents=True, exist_ok=True)
    atomic_files.replace(note, lambda file: file.write(os.fsencode(staging)))
    try:
        yield
    finally:
        if not staging.exists():
            note.unlink(missing_ok=True)
            folders.lock_of(target).unlink(missing_ok=True)


def _plan(
    name: str, samples: Samples, files: Sequence[ImageFile], keys: Sequence[str], shard_bytes: int
) -> tuple[Array, str]:
    """Return the size of each file in bytes (N,), and a digest of everything that determines the packed result."""
    digest = hashlib.sha256(f"{index.Manifest.model_fields['version'].default} {name} {shard_bytes}\n".encode())
    sizes = np.empty(len(files), np.int64)
    for row, (file, key) in enumerate(zip(files, keys, strict=True)):
        try:
            status = file.stat()
        except OSError as error:
            raise DataError(f"image {file} cannot be read ({error}); complete the data set") from None
        sizes[row] = status.st_size
        digest.update(os.fsencode(key) + f"\0{status.st_size} {status.st_mtime_ns}\n".encode())
    for part in (samples.labels, samples.official_train, samples.gallery):
        digest.update(b"-" if part is None else part.tobytes())
    digest.update(repr((samples.class_names, samples.train_classes, samples.notes)).encode(errors="surrogatepass"))
    if (largest := int(sizes.max(initial=0))) >= 2**32:
        raise DataError(
            f"image {files[int(sizes.argmax())]} has {largest:,} bytes, but an image must have fewer than 2^32"
        )
    return sizes, digest.hexdigest()


def _is_there(target: Path, plan: str) -> bool:
    """Return True if `target` is already the result of the packing `plan`; raise DataError if it is anything else."""
    if index.is_sharded(target) and index.read_manifest(target).source == plan:
        return True
    if target.exists() or target.is_symlink():
        raise DataError(f"{target} already exists with other contents; remove it, or choose another folder with --into")
    return False


def _start_anew_unless(staging: Path, plan: str) -> None:
    """Remove the staging folder unless it belongs to `plan`; raise DataError if `pack` did not create it."""
    if not staging.exists() and not staging.is_symlink():
        return
    with contextlib.suppress(OSError):
        if (staging / PLAN).read_text() == plan:
            return
    if not (staging / PLAN).exists() and any(staging.iterdir()):
        raise DataError(f"{staging} is not an interrupted packing; remove it, or choose another folder with --into")
    shutil.rmtree(staging)


@dataclass(frozen=True, eq=False)
class _Packing:
    """Packing of one data set into shards of consecutive samples; `sizes` are those of the files in bytes (N,)."""

    name: str
    samples: Samples
    files: Sequence[ImageFile]
    keys: Sequence[str]
    sizes: Array
    shard_bytes: int
    plan: str

    def into(self, staging: Path) -> None:
        """Write shards, index and manifest into `staging`, reusing complete shards from an interrupted packing."""
        atomic_files.replace(staging / PLAN, lambda file: file.write(self.plan.encode()))
        # 3 further blocks per sample: the header of the image, and the class file with its header
        ends = np.cumsum((self.sizes + BLOCK - 1) // BLOCK * BLOCK + 3 * BLOCK)
        cuts = np.flatnonzero(np.diff((ends - 1) // self.shard_bytes)) + 1
        shards, rows = [], np.zeros(len(self.files), ROW)
        last_report = time.monotonic()
        for number, (begin, end) in enumerate(itertools.pairwise([0, *cuts.tolist(), len(rows)])):
            shard, rows[begin:end] = self._shard(staging, number, begin, end)
            shards.append(shard)
            if time.monotonic() > last_report + SAY_EVERY:
                log.info("packed %s of %s images", f"{end:,}", f"{len(self.files):,}")
                last_report = time.monotonic()
        write_index(staging, self.name, _table_of(self.name, self.samples, self.keys), rows, shards, source=self.plan)
        (staging / PLAN).unlink()

    def _shard(self, staging: Path, number: int, begin: int, end: int) -> tuple[Shard, Array]:
        """Write shard `number` unless it is already complete; return its record and index rows, read from the file."""
        path = staging / f"{self.name}-{number:05d}.tar"
        if not path.is_file():
            atomic_files.replace(path, lambda file: self._write(file, begin, end))
        rows = np.zeros(end - begin, ROW)
        rows["shard"] = number
        with path.open("rb") as file, tarfile.open(fileobj=file, mode="r:") as tar:
            for row, image in enumerate(itertools.islice(tar, 0, None, 2)):  # every other member is a class file
                file.seek(image.offset_data)
                crc = zlib.crc32(file.read(image.size))
                rows["offset"][row], rows["size"][row], rows["crc"][row] = image.offset_data, image.size, crc
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return Shard(name=path.name, samples=end - begin, size=path.stat().st_size, sha256=digest), rows

    def _write(self, file: IO[bytes], begin: int, end: int) -> None:
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for key, row in zip(self._member_names(begin, end), range(begin, end), strict=True):
                _add(tar, key, self._content(row))
                _add(tar, f"{os.path.splitext(key)[0]}.cls", str(self.samples.labels[row]).encode())

    def _content(self, row: int) -> bytes:
        try:
            with self.files[row].open("rb") as file:
                content = file.read()
        except OSError as error:
            raise DataError(f"image {self.files[row]} cannot be read ({error}); complete the data set") from None
        if len(content) != self.sizes[row]:
            raise DataError(f"image {self.files[row]} changed during packing; pack the data set again")
        return content

    def _member_names(self, begin: int, end: int) -> Iterator[str]:
        """Yield the name of each image in a shard: its path, or its row number if WebDataset would misread the path."""
        taken = set()
        for row in range(begin, end):
            name = self.keys[row]
            stem, ending = os.path.splitext(name)
            if not _PLAIN.fullmatch(name) or stem in taken or not name.isprintable():
                name = f"{row:09d}{ending.lower() if ending.isascii() and ending.isprintable() else ''}"
            taken.add(stem)
            yield name


def write_index(
    folder: Path, name: str, table: ImageTable, rows: Array, shards: Sequence[Shard], *, source: str = ""
) -> None:
    """Write the index and then the manifest of shards into a folder.

    Args:
        folder: Folder to write to.
        name: The data set.
        table: Names, labels and splits of the samples.
        rows: Rows (N,) of dtype ROW in which shard, offset, size and, if `source` is given, crc are set; the other
            columns are filled from `table`.
        shards: Records of the shards.
        source: Digest of the packed files; "" if the shards were packed by other tools.
    """
    names = [os.fsencode(path) for path in table.paths]
    rows["key_end"] = np.cumsum([len(name) for name in names])
    rows["label"] = table.labels
    for field, flags in (("train", table.official_train), ("gallery", table.gallery)):
        if flags is not None:
            rows[field] = flags
    writers: dict[str, Callable[[IO[bytes]], Any]] = {
        index.ROWS: lambda file: np.save(file, rows, allow_pickle=False),
        index.KEYS: lambda file: file.write(b"".join(names)),
        index.CLASSES: lambda file: file.write(json.dumps(table.class_names).encode()),
    }
    digests = {}
    for file_name, write in writers.items():
        atomic_files.replace(folder / file_name, write)
        with (folder / file_name).open("rb") as file:
            digests[file_name] = hashlib.file_digest(file, "sha256").hexdigest()
    manifest = Manifest(
        data=name,
        samples=len(rows),
        train_classes=table.train_classes,
        image_wise=table.official_train is not None,
        searched=table.gallery is not None,
        checked=bool(source),
        notes=table.notes,
        source=source,
        digests=digests,
        shards=tuple(shards),
    )
    atomic_files.replace_json(folder / index.MANIFEST, manifest.model_dump())


def _table_of(name: str, samples: Samples, keys: Sequence[str]) -> ImageTable:
    """Return the image table of samples; omit the notes on published counts, which the reader of shards adds again."""
    deviations = published_counts.deviations(name, samples.labels, samples.train_classes, samples.gallery)
    return ImageTable(
        paths=keys,
        labels=samples.labels,
        class_names=samples.class_names,
        train_classes=samples.train_classes,
        official_train=samples.official_train,
        gallery=samples.gallery,
        notes=samples.notes[len(deviations) :],
    )


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    """Append a file without owner and time, so that equal files give byte-identical shards."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    tar.addfile(info, io.BytesIO(content))
