"""Copying of new files from a node's copy of a run to the run directory in the store.

Complete files are hard-linked where the file system supports it. The run in the store can be resumed at any time,
because a checkpoint is copied only after the metric rows up to its step.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from dmlcore.storage import atomic_files
from dmlcore.storage.run_directory import CANCEL, LAST, LOCK, LOG, METRICS, PREV, SPEC, STATE

Signature = tuple[int, int, int]
# files of which source and target have independent versions, so they are not copied
_OWN = {LOCK, CANCEL, STATE, "hurry"}
# number of bytes at the end of the target's metrics.jsonl that must equal those in the source before rows are appended
_TAIL = 4096


def files(folder: Path) -> dict[str, Signature]:
    """Return a signature of each complete file in a run directory and its subdirectories, by relative path.

    Hidden files and those listed in _OWN are omitted.
    """
    signatures: dict[str, Signature] = {}
    for path in _entries(folder):
        for entry in _entries(path) if path.is_dir() and not path.is_symlink() else [path]:
            with contextlib.suppress(FileNotFoundError):
                status = entry.lstat()
                if entry.is_file() and not entry.is_symlink():
                    signatures[str(entry.relative_to(folder))] = (status.st_mtime_ns, status.st_size, status.st_ino)
    return signatures


def _entries(folder: Path) -> Iterator[Path]:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        yield from (
            folder / name for name in sorted(os.listdir(folder)) if not name.startswith(".") and name not in _OWN
        )


def copy_run(run: Path, into: Path) -> None:
    """Copy a run into a new directory, except its log, state, lock and cancel file."""
    for name in files(run):
        if name != LOG:
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            (shutil.copyfile if name == METRICS else link_or_copy)(run / name, into / name)


def link_or_copy(source: Path, target: Path) -> None:
    """Hard-link a file that will not be modified, or copy it if links are not possible."""
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:  # the target is on another file system, or the file system has no hard links
        shutil.copyfile(source, target)
        with open(target, "rb+") as file:
            os.fsync(file.fileno())


class Mirror:
    """Copier of new files from `source`, a node's copy of a run, to the locked run directory `target`."""

    def __init__(self, source: Path, target: Path) -> None:
        self.source, self.target = source, target
        self._seen = files(source)
        self._log = 0

    def copy_new_files(self) -> None:
        """Copy all new files except the spec, which never changes.

        Raises OSError if the disk is full; the target can then still be resumed as before.
        """
        now = files(self.source)
        fresh: list[tuple[Path, Path]] = []
        for name, signature in now.items():
            if name not in (METRICS, LOG, SPEC) and self._seen.get(name) != signature:
                place = self.target / name
                temporary = place.with_name(f".{place.name}.new")
                place.parent.mkdir(exist_ok=True)
                temporary.unlink(missing_ok=True)
                with contextlib.suppress(FileNotFoundError):  # the file is just being replaced; the next call copies it
                    link_or_copy(self.source / name, temporary)
                    fresh.append((temporary, place))
        self._copy_rows()
        self._copy_log()
        for temporary, place in fresh:
            os.replace(temporary, place)
            # os.replace leaves `temporary` in place if both names are links to the same file
            temporary.unlink(missing_ok=True)
        # last.ckpt and prev.ckpt may be absent for a moment while a checkpoint is saved; the spec is never removed
        for name in self._seen.keys() - now.keys() - {LAST, PREV, SPEC}:
            (self.target / name).unlink(missing_ok=True)
        for folder in {place.parent for _, place in fresh}:
            atomic_files.sync_directory(folder)
        self._seen = now

    def _copy_rows(self) -> None:
        """Append new rows to the target's metrics.jsonl, or replace it if a resume has truncated the source file."""
        source, target = self.source / METRICS, self.target / METRICS
        if not source.exists():
            return
        have = target.stat().st_size if target.exists() else 0
        with open(source, "rb") as file:
            overlap = min(have, _TAIL)
            file.seek(have - overlap)
            if file.read(overlap) != _tail(target, overlap):
                file.seek(0)
                whole = file.read()
                atomic_files.replace(target, lambda into: into.write(whole))
            elif new := file.read():
                with open(target, "ab") as into:
                    into.write(new)
                    into.flush()
                    os.fsync(into.fileno())

    def _copy_log(self) -> None:
        """Append the bytes added to the source's log since the last call to the target's log."""
        with contextlib.suppress(FileNotFoundError), open(self.source / LOG, "rb") as file:
            file.seek(self._log)
            if new := file.read():
                with open(self.target / LOG, "ab") as into:
                    into.write(new)
                self._log += len(new)


def _tail(path: Path, length: int) -> bytes:
    if not length:
        return b""
    with open(path, "rb") as file:
        file.seek(-length, os.SEEK_END)
        return file.read()
