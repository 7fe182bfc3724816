"""Folders of the cache that are made once: by one process, going on where a killed one stopped, whole or not at all."""

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


def made_once(folder: Path, kind: str, name: str, last: str, make: Callable[[Path], None], what: str) -> Path:
    """The folder `folder`/`kind`-`name`, made by `make(staging)` where it is not there; others of its kind go.

    kind: of what it is made; name: how that is now. last: a file that a whole one has. make goes on in `staging`, where
    a killed one stopped, and raises what is wrong with the source, upon which nothing is left. what: in the plural, as
    a message names it. Raises DataError where the cache cannot hold it.
    """
    place = folder / f"{kind}-{name}"
    try:
        if not (place / last).is_file():
            folder.mkdir(parents=True, exist_ok=True)
            with alone(place, what):
                if not (place / last).is_file():
                    _remove_others(folder, kind, place.name)
                    make_whole(place, make)
        with contextlib.suppress(OSError):  # a cache may be read-only
            os.utime(place)  # when it was last used
        return place
    except OSError as error:
        raise unkept(folder, what, error) from error


def unkept(folder: Path, what: str, error: OSError) -> DataError:
    """What to say where the cache cannot hold it."""
    space = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    why = f"there is no space left for {what}" if space else f"{what} cannot be kept"
    return DataError(f"{why} in {folder} ({error}); make room there, or set DML_CACHE to another folder")


def damaged(place: Path, what: str) -> DataError:
    """What to say of one whose files do not fit each other."""
    return DataError(f"{what} in {place} are damaged; remove that folder, it is made again")


def make_room(folder: Path, needed: int, most: int) -> None:
    """Remove those in `folder` that nobody makes, the longest unused first, until `needed` bytes more are `most`."""
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
    """Let one process, and one thread of it, make the folder `place`; the others wait and then find it done."""
    lock = lock_of(place)
    try:
        held = locks.ProcessLock(lock, wait=0.0).__enter__()
    except locks.Busy:
        log.info("another process makes %s; waiting for it", what)
        held = locks.ProcessLock(lock, wait=float("inf")).__enter__()
    try:
        yield
    finally:
        held.__exit__()


def _remove_others(folder: Path, kind: str, name: str) -> None:
    """Remove those of a kind as it was before its source changed."""
    for other in folder.glob(f"{kind}-*"):
        if other.is_dir() and other.name.partition(".")[0] != name:
            remove(other)


def remove(place: Path) -> bool:
    """Remove a folder or file of the cache unless it is being made; whoever has its files mapped keeps them."""
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
    """What is locked while a folder, or its staging folder, is made."""
    return place.with_name(f"{place.name.partition('.')[0]}.lock")


def staging_of(place: Path) -> Path:
    """The folder in which a folder is made."""
    return place.with_name(f"{place.name}.staging")


def make_whole(place: Path, make: Callable[[Path], None]) -> None:
    """Make the folder `place` by `make(staging)`, as `made_once` does; one that is there goes. Be `alone`."""
    staging = staging_of(place)
    staging.mkdir(exist_ok=True)
    try:
        make(staging)
    except Exception:  # the source is bad, or it may be what fills the disk
        shutil.rmtree(staging, ignore_errors=True)
        raise
    atomic_files.sync_directory(staging)
    shutil.rmtree(place, ignore_errors=True)  # what a half-done removal has left
    os.rename(staging, place)
    atomic_files.sync_directory(place.parent)
