"""Cache folders, each created atomically by one process; if that process is killed, the next one resumes its work."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from dmlcore.data.dataset import DataError
from dmlcore.storage import atomic_files, locks

log = logging.getLogger(__name__)


def create_once(folder: Path, kind: str, name: str, last: str, make: Callable[[Path], None], what: str) -> Path:
    """Return the cache folder `folder`/`kind`-`name`; if missing, create it and remove other folders with this `kind`.

    Args:
        folder: Parent folder in the cache.
        kind: Identifier of the source from which the contents are made, such as a digest of file paths.
        name: Identifier of the current state of the source; a change makes older folders obsolete.
        last: Name of a file that only a complete folder contains.
        make: Function that writes the contents into a staging folder, which may hold files from a killed process. If it
            raises an error, the staging folder is removed.
        what: Plural noun for the contents, used in messages.

    Raises:
        DataError: If the cache cannot hold the folder.
    """
    place = folder / f"{kind}-{name}"
    try:
        if not (place / last).is_file():
            folder.mkdir(parents=True, exist_ok=True)
            with alone(place, what):
                if not (place / last).is_file():
                    _remove_others(folder, kind, place.name)
                    create_folder(place, make)
        with contextlib.suppress(OSError):  # the cache may be read-only
            os.utime(place)  # set the modification time to the time of last use
        return place
    except OSError as error:
        raise cache_error(folder, what, error) from error


def cache_error(folder: Path, what: str, error: OSError) -> DataError:
    """Return the error to raise if `what`, a plural noun for the contents, cannot be written to the cache."""
    space = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    why = f"there is no space left for {what}" if space else f"{what} cannot be written"
    return DataError(f"{why} in {folder} ({error}); free some space there, or set DML_CACHE to another folder")


def damaged_error(place: Path, what: str) -> DataError:
    """Return the error to raise if the files in the cache folder `place` are inconsistent."""
    return DataError(f"{what} in {place} are damaged; remove this folder, it will be recreated")


def make_room(folder: Path, needed: int, most: int) -> None:
    """Remove subfolders of `folder`, least recently used first, until they take at most `most` - `needed` bytes."""
    folders = []
    for place in folder.glob("*-*"):
        with contextlib.suppress(OSError):
            if place.is_dir():
                size = sum(file.stat().st_size for file in place.iterdir())
                folders.append((place.stat().st_mtime_ns, size, place))
    held = needed + sum(size for _, size, _ in folders)
    for _, size, place in sorted(folders):
        if held > most and remove(place):
            held -= size


@contextlib.contextmanager
def alone(place: Path, what: str) -> Iterator[None]:
    """Hold the lock for creating the folder `place`, waiting while another process or thread holds it.

    `what` is a plural noun for the contents, used in a log message while waiting.
    """
    lock = lock_of(place)
    try:
        held = locks.ProcessLock(lock, wait=0.0).__enter__()
    except locks.Busy:
        log.info("another process is creating %s; waiting for it", what)
        held = locks.ProcessLock(lock, wait=float("inf")).__enter__()
    try:
        yield
    finally:
        held.__exit__()


def _remove_others(folder: Path, kind: str, name: str) -> None:
    """Remove the cache folders of source `kind` except `name`; they belong to earlier states of the source."""
    for other in folder.glob(f"{kind}-*"):
        if other.is_dir() and other.name.partition(".")[0] != name:
            remove(other)


def remove(place: Path) -> bool:
    """Remove a folder or file from the cache, unless a process is creating it; return True if it was removed.

    Files that a process has memory-mapped remain readable for that process.
    """
    lock = lock_of(place)
    if locks.holder(lock) != 0:
        return False
    if place.is_dir():
        shutil.rmtree(place, ignore_errors=True)
    else:
        place.unlink(missing_ok=True)
    lock.unlink(missing_ok=True)
    return True


def lock_of(place: Path) -> Path:
    """Return the path of the lock file that is held while the folder `place` is created."""
    return place.with_name(f"{place.name.partition('.')[0]}.lock")


def staging_of(place: Path) -> Path:
    """Return the path of the staging folder in which the contents of `place` are created."""
    return place.with_name(f"{place.name}.staging")


def create_folder(place: Path, make: Callable[[Path], None]) -> None:
    """Create or replace the folder `place` with the files that `make(staging)` writes; call within `alone(place)`."""
    staging = staging_of(place)
    staging.mkdir(exist_ok=True)
    try:
        make(staging)
    except Exception:  # the source is unreadable, or the contents have filled the disk
        shutil.rmtree(staging, ignore_errors=True)
        raise
    atomic_files.sync_directory(staging)
    shutil.rmtree(place, ignore_errors=True)  # may be left over from an interrupted removal
    os.rename(staging, place)
    atomic_files.sync_directory(place.parent)
