"""Removal of files and directories that a crash leaves behind in a run store.

A run is created as `.new-ID` and deleted as `.deleted-ID`; meanwhile, a lock in that directory is held. A file is
written as `.NAME.tmp` or `.NAME.new` next to the file that it replaces. An entry is removed only if its lock is free
and it is older than `FOLDER_AGE` or `FILE_AGE`. The age is checked too because a live process does not hold the lock
yet just after it has created the directory.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from dmlcore.storage import locks
from dmlcore.storage.run_directory import LOCK

NEW, DELETED = ".new-", ".deleted-"
FOLDER_AGE = 60.0  # minimum age of a directory in seconds, counted from the last creation or removal of an entry in it
FILE_AGE = 600.0  # minimum age of a file in seconds, counted from its last write
_FOLDER = re.compile(r"\.(new|deleted)-[a-z0-9][a-z0-9-]*")
_FILE = re.compile(r"\..+\.(tmp|new)")
log = logging.getLogger(__name__)


def sweep(store: Path) -> int:
    """Remove all leftovers from a store and its runs; return the number of directories and files removed.

    An entry that cannot be removed is kept and logged as a warning.
    """
    count = sweep_folders(store)
    for entry in _entries(store):
        if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".") and any(_old_files(Path(entry))):
            with (
                contextlib.suppress(OSError, locks.Busy),
                locks.ProcessLock(Path(entry) / LOCK, wait=0.0),
            ):
                count += sweep_files(Path(entry))
    return count


def sweep_folders(store: Path) -> int:
    """Remove the directories of runs whose creation or deletion was interrupted; return how many were removed."""
    count = 0
    for entry in _entries(store):
        if not _FOLDER.fullmatch(entry.name) or not entry.is_dir(follow_symlinks=False):
            continue
        try:
            if time.time() - os.lstat(entry.path).st_ctime < FOLDER_AGE:
                continue
            with locks.ProcessLock(Path(entry) / LOCK, wait=0.0):
                remove(Path(entry))
            count += 1
        # Another process removes the directory now, or the process that creates the run has completed and renamed it.
        except (locks.Busy, FileNotFoundError):
            continue
        except OSError as error:
            log.warning("cannot remove the leftover %s: %s", entry.name, error)
    return count


def sweep_files(run: Path) -> int:
    """Remove old, partially written files from a run whose lock this process holds; return their number."""
    old_files = list(_old_files(run))
    for path in old_files:
        with contextlib.suppress(OSError):
            path.unlink()
    return len(old_files)


def remove(folder: Path) -> None:
    """Remove a directory, even while another process removes it too; raises OSError if an entry cannot be removed."""
    while folder.exists():
        try:
            shutil.rmtree(folder)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTEMPTY):
                raise


def _old_files(run: Path) -> Iterator[Path]:
    """Yield the partially written files older than FILE_AGE in a run directory and its direct subdirectories."""
    for entry in _entries(run):
        with contextlib.suppress(OSError):
            if entry.is_dir(follow_symlinks=False):
                yield from (Path(inner) for inner in _entries(Path(entry)) if _is_old_file(inner))
            elif _is_old_file(entry):
                yield Path(entry)


def _is_old_file(entry: os.DirEntry[str]) -> bool:
    if not _FILE.fullmatch(entry.name) or not entry.is_file(follow_symlinks=False):
        return False
    return time.time() - entry.stat(follow_symlinks=False).st_mtime >= FILE_AGE


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []
