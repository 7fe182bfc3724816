"""A run directory that is worked on elsewhere, and the one of the run store, which takes over what is new there.

Files that are replaced whole are taken by a second name of the same bytes where the file system allows it. At every
moment the one in the run store is one that a resume goes on from: a checkpoint never comes before the rows it counts.
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
_OWN = {LOCK, CANCEL, STATE, "hurry"}  # each side has its own
_TAIL = 4096  # bytes before the place where rows are added, compared with those that are there


def files(folder: Path) -> dict[str, Signature]:
    """The finished files of a run directory and the folders in it, as they are now."""
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


def seed(run: Path, into: Path) -> None:
    """Give a new directory what there is of a run, but for its log, its state and its lock."""
    for name in files(run):
        if name != LOG:
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            (shutil.copyfile if name == METRICS else take)(run / name, into / name)


def take(source: Path, target: Path) -> None:
    """Another name of the same file, which nobody changes, or else a copy of it."""
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:  # another file system, or one without hard links
        shutil.copyfile(source, target)
        with open(target, "rb+") as file:
            os.fsync(file.fileno())


class Mirror:
    """Carries what is new in `source`, made by `seed`, over to the run directory `target`, whose lock we hold."""

    def __init__(self, source: Path, target: Path) -> None:
        self.source, self.target = source, target
        self._seen = files(source)
        self._log = 0

    def carry(self) -> None:
        """Take over what is new, but for the spec, which never changes; raises OSError (disk full).

        The run directory is then as good as before.
        """
        now = files(self.source)
        fresh: list[tuple[Path, Path]] = []
        for name, signature in now.items():
            if name not in (METRICS, LOG, SPEC) and self._seen.get(name) != signature:
                place = self.target / name
                beside = place.with_name(f".{place.name}.new")
                place.parent.mkdir(exist_ok=True)
                beside.unlink(missing_ok=True)
                with contextlib.suppress(FileNotFoundError):  # replaced this very moment: the next look finds it
                    take(self.source / name, beside)
                    fresh.append((beside, place))
        self._rows()
        self._words()
        for beside, place in fresh:
            os.replace(beside, place)
            beside.unlink(missing_ok=True)  # two names of the same file: then the kernel does not rename
        for name in self._seen.keys() - now.keys() - {LAST, PREV, SPEC}:  # the first two are gone while one is saved
            (self.target / name).unlink(missing_ok=True)
        for folder in {place.parent for _, place in fresh}:
            atomic_files.sync_directory(folder)
        self._seen = now

    def _rows(self) -> None:
        """The rows of metrics.jsonl: those that came since, or all where it was cut at a resume."""
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

    def _words(self) -> None:
        """What came to the log."""
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
