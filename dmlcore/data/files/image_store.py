"""Store of decoded images: a memory-mapped file in the cache or, if it would be too large, decoding on access."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from dmlcore.data.dataset import DataError, ImageFile, rows_of
from dmlcore.data.files import images
from dmlcore.data.files.cache_folder import cache_error, create_once, damaged_error, staging_of
from dmlcore.data.files.locate import cache_folder
from dmlcore.data.shards.index import ShardImages
from dmlcore.typing import Array, Ints, Pixels

VERSION = 1  # version of file layout and resizing; stores with another version are ignored
CHUNK = 256  # number of images decoded between two writes to disk
SAY_EVERY = 5.0  # seconds between two log messages about the progress

log = logging.getLogger(__name__)


def short_side(side: int) -> int:
    """Return the shorter side, in pixels, of the stored images from which crops of side `side` are taken: 256 for 227.

    Karaman 2021 and Psomas 2020 use the ratio 256/227.
    """
    return round(side * 256 / 227)


class StoredImages:
    """Images `paths` as an array-like of centre crops, (N, 3, size, size) uint8.

    The crops are taken from copies whose shorter side is 256/227 times `size`; `uncut` returns the uncropped copies.
    Indexing follows numpy along the first axis and returns a copy. On first access, all images are decoded and stored
    in the cache, where later processes find them until a file changes. If the copies would take too much space (see
    `is_decoded_once`), each image is decoded on every access instead, with the same pixel values.

    Raises:
        DataError: On access, if images are unreadable or the cache cannot hold the copies.
    """

    dtype = np.dtype(np.uint8)

    def __init__(self, paths: Sequence[ImageFile], size: int) -> None:
        self._paths = paths
        self.shape = (len(self._paths), 3, size, size)
        self._guard = threading.Lock()
        self._opened: Callable[[Ints], Iterator[Pixels]] | None = None

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, index: Any, /) -> Pixels:
        rows = rows_of(index, len(self))
        side = self.shape[-1]
        cuts = np.empty((rows.size, side, side, 3), np.uint8)
        for cut, image in zip(cuts, self._images(rows), strict=True):
            top, left = (image.shape[0] - side) // 2, (image.shape[1] - side) // 2
            cut[:] = image[top : top + side, left : left + side]
        # View with channels first, (N, 3, H, W), of memory in channels-last order, which the network uses on the
        # device.
        return cuts.reshape(*rows.shape, side, side, 3).swapaxes(-1, -2).swapaxes(-2, -3)

    def uncut(self, indices: Ints) -> list[Pixels]:
        """Return views (h, w, 3) of the uncropped images, which must not be modified."""
        return list(self._images(np.asarray(indices)))

    def _images(self, rows: Ints) -> Iterator[Pixels]:
        """Yield views (h, w, 3) of the uncropped images with the row numbers `rows`."""
        if rows.size == 0:
            return
        with self._guard:
            if self._opened is None:
                self._opened = _open(self._paths, short_side(self.shape[-1]))
        yield from self._opened(rows.ravel())


def _open(paths: Sequence[ImageFile], short: int) -> Callable[[Ints], Iterator[Pixels]]:
    """Return a function that maps row numbers to an iterator of images (h, w, 3); store the images if there is room."""
    folder, what = cache_folder() / "pictures", "the decoded images"
    kind, name = names(paths, short)
    if not is_decoded_once(folder / f"{kind}-{name}", len(paths), short):
        return partial(_decoded_now, paths, short)
    place = create_once(folder, kind, name, "sizes", lambda staging: _decode(paths, short, staging), what)
    try:
        sizes, offsets = _read_sizes(place)
        # Copy-on-write instead of read-only, which torch warns about; nothing writes to the array.
        pixels = np.memmap(place / "pixels", np.uint8, mode="c")
    except OSError as error:
        raise cache_error(folder, what, error) from error
    if len(sizes) != len(paths) or len(pixels) != offsets[-1]:
        raise damaged_error(place, what)

    def copied(rows: Ints) -> Iterator[Pixels]:
        for row in rows.tolist():
            height, width = sizes[row].tolist()
            yield pixels[offsets[row] : offsets[row + 1]].reshape(height, width, 3)

    return copied


def is_decoded_once(place: Path, count: int, short: int) -> bool:
    """Return True if images are decoded once and stored in the folder `place`, instead of decoded on each access.

    This is the case if a complete or unfinished store exists in `place`, or if the images take at most $DML_DECODED_GB
    gigabytes (by default, half of the free disk space). Raises DataError if $DML_DECODED_GB is not a number.
    """
    if place.exists() or staging_of(place).exists():
        return True
    # three bytes per pixel, and 4/3 as many pixels as a square, for photographs with an aspect ratio of 4:3
    needed = count * short * short * 4
    given = os.environ.get("DML_DECODED_GB")
    try:
        existing = next(folder for folder in place.parents if folder.exists())
        most = float(given) * 1e9 if given else shutil.disk_usage(existing).free / 2
    except (OSError, ValueError):
        if given:
            raise DataError(f"DML_DECODED_GB must be a number of gigabytes, got {given!r}") from None
        return True  # free space is unknown; creating the store will report why
    if needed <= most:
        return True
    log.info(
        "caching %s decoded images would take %.1f GB, above the limit of %.1f GB; images are decoded at every read",
        *(f"{count:,}", needed / 1e9, most / 1e9),
    )
    return False


def _decoded_now(paths: Sequence[ImageFile], short: int, rows: Ints) -> Iterator[Pixels]:
    """Decode and yield the images with the row numbers `rows`; at most CHUNK images are in memory at a time."""
    for begin in range(0, len(rows), CHUNK):
        chunk = [paths[row] for row in rows[begin : begin + CHUNK].tolist()]
        yield from _threads().map(lambda file: images.with_short_side(file, short), chunk)


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(images.WORKERS, "decode")  # Pillow releases the GIL while it decodes


os.register_at_fork(after_in_child=_threads.cache_clear)  # the threads do not exist in a forked process


def names(paths: Sequence[ImageFile], size: int) -> tuple[str, str]:
    """Return the two identifiers of a store: a digest of the image locations, and one of the file sizes and times."""
    if isinstance(paths, ShardImages):
        place = f"{VERSION} {size} {os.path.realpath(paths.shards.folder)} {len(paths)} shards"
        if not isinstance(paths.rows, range):  # not a range if damaged images are left out
            place += f" {hashlib.sha256(np.asarray(paths.rows).tobytes()).hexdigest()}"
        return hashlib.sha256(place.encode(errors="surrogateescape")).hexdigest()[:20], paths.shards.stamp[:20]
    return _names(cast("Sequence[Path]", paths), size)


def _names(paths: Sequence[Path], size: int) -> tuple[str, str]:
    root = os.path.commonpath([os.path.abspath(path.parent) for path in paths])
    where, now = hashlib.sha256(f"{VERSION} {size} {os.path.realpath(root)}".encode()), hashlib.sha256()
    for path in paths:
        where.update(os.fsencode(os.path.relpath(path, root)) + b"\0")
        try:
            status = path.stat()
            now.update(f"{status.st_size} {status.st_mtime_ns}\n".encode())
        except OSError:  # decoding will report that the file is missing
            now.update(b"-\n")
    return where.hexdigest()[:20], now.hexdigest()[:20]


def _decode(paths: Sequence[ImageFile], short: int, staging: Path) -> None:
    """Write the files of a store, continuing after the last complete image; raise DataError if any image is damaged."""
    with open(staging / "pixels", "ab") as pixels, open(staging / "sizes", "ab") as sizes:
        done = _rewind(staging, pixels, sizes)
        failures = _append(paths, done, short, pixels, sizes)
    if failures:
        raise DataError(
            f"{len(failures)} of {len(paths)} images are unreadable, the first: {failures[0]}; "
            "to leave them out, set data.damaged to skip"
        )


def _append(paths: Sequence[ImageFile], done: int, short: int, pixels: IO[bytes], sizes: IO[bytes]) -> list[DataError]:
    """Decode paths[done:] and append to the files `pixels` and `sizes`; return the errors of images that failed."""

    def decode(path: ImageFile) -> Pixels | DataError:
        try:
            return images.with_short_side(path, short)
        except DataError as error:
            return error

    failures: list[DataError] = []
    last_report = time.monotonic()
    with ThreadPoolExecutor(images.WORKERS, "decode") as pool:  # Pillow releases the GIL while it decodes
        for begin in range(done, len(paths), CHUNK):
            outcomes = list(pool.map(decode, paths[begin : begin + CHUNK]))
            failures += [image for image in outcomes if isinstance(image, DataError)]
            if not failures:
                decoded = [image for image in outcomes if not isinstance(image, DataError)]
                # written before the sizes, because an entry in `sizes` marks an image as complete
                _write(pixels, *decoded)
                _write(sizes, np.array([image.shape[:2] for image in decoded], np.int32))
            done = begin + len(outcomes)
            if time.monotonic() > last_report + SAY_EVERY or (done == len(paths) and done > CHUNK):
                log.info("decoded %s of %s images", f"{done:,}", f"{len(paths):,}")
                last_report = time.monotonic()
    return failures


def _write(file: IO[bytes], *arrays: Array) -> None:
    for array in arrays:
        file.write(array.tobytes())
    file.flush()
    os.fsync(file.fileno())


def _rewind(staging: Path, pixels: IO[bytes], sizes: IO[bytes]) -> int:
    """Truncate `pixels` and `sizes` after the last image that is complete in both; return the number of such images."""
    _, offsets = _read_sizes(staging)
    done = int(np.searchsorted(offsets, os.path.getsize(staging / "pixels"), side="right")) - 1
    pixels.truncate(int(offsets[done]))
    sizes.truncate(done * 8)
    return done


def _read_sizes(place: Path) -> tuple[Ints, Ints]:
    content = (place / "sizes").read_bytes()
    sizes = np.frombuffer(content[: len(content) // 8 * 8], np.int32).reshape(-1, 2).astype(np.int64)
    return sizes, np.concatenate([[0], np.cumsum(sizes.prod(axis=1) * 3)])
