"""In-memory index of a run store; a lookup reads only the files that changed since the previous one.

Specs never change, so their searchable fields are kept for the life of the process. Other files are read again if their
modification time, inode or size has changed. Run ids start with the minute of creation, so the newest runs are found
without reading others. The index is not stored on disk.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Generic, TypeVar

from dmlcore.spec import RunSpec
from dmlcore.storage.run_directory import SPEC, STATE

T = TypeVar("T")
Signature = tuple[int, int, int]  # modification time in ns, inode, size in bytes
STAMP = re.compile(r"\d{8}-\d{4}(?=-)")  # UTC minute of creation (YYYYMMDD-HHMM) at the start of a run id
# A file rewritten within one tick of the file system's clock keeps its modification time, so signatures of younger
# files are not trusted.
TICK = 50_000_000  # ns


@dataclass(frozen=True, slots=True)
class Brief:
    """Searchable fields of a spec. `digest` ignores the name of the spec, so equal experiments have equal digests."""

    name: str
    protocol: str
    data: str
    model: str
    loss: str
    parent: str  # id of the run that this one was forked from, or ""
    digest: str

    @classmethod
    def of(cls, spec: RunSpec) -> Brief:
        """Return the searchable fields of a spec."""
        return cls(
            sys.intern(spec.name),
            sys.intern(spec.protocol),
            sys.intern(spec.data.name),
            sys.intern(spec.model.name),
            sys.intern(spec.loss.name),
            sys.intern(spec.fork.run),
            without_name(spec).digest(),
        )


@dataclass(frozen=True, slots=True)
class RunFacts:
    """Indexed data of one run: searchable fields, creation time and recorded state, or `reason` if it is unreadable."""

    spec_file: Signature | None  # None if the file is missing or too young to be trusted
    state_file: Signature | None
    brief: Brief | None
    created: float = 0.0
    state: str = ""
    reason: str = ""


class Listing:
    """Index of the runs in one directory, newest first; shared by all threads of this process."""

    def __init__(self, root: Path, is_run: Callable[[str], object], read: Callable[[Path], RunFacts]) -> None:
        self.root, self._is_run, self._read = root, is_run, read
        # held during a scan, so that other threads wait for its result instead of repeating it
        self._lock = threading.RLock()
        self._folder: Signature | None = None
        self._inodes: dict[str, int] = {}  # of all run directories
        self._known: dict[str, RunFacts] = {}
        self._groups: list[list[str]] = []  # run names grouped by minute of creation, newest minute first
        self._sorted = 0  # number of leading groups whose names are sorted

    def find(
        self, wanted: Callable[[str, Brief], object], count: int | None = None, state: tuple[str, ...] = ()
    ) -> list[str]:
        """Return the names of the readable runs that match, newest first, according to the current files on disk.

        Args:
            wanted: Predicate on a run's name and searchable fields.
            count: Maximum number of names.
            state: If given, only runs with one of these recorded states; every run is then examined.
        """
        ids: list[str] = []
        with self._lock:
            self._refresh()
            for name in self._in_order():
                known = self._known[name]
                if known.brief and not state and not wanted(name, known.brief):
                    continue
                now = self._looked_at(name, known)
                if now.brief and (not state or now.state in state) and wanted(name, now.brief):
                    ids.append(name)
                    if len(ids) == count:
                        break
        return ids

    def count(self) -> int:
        """Return the number of run directories, not counting those known to be unreadable."""
        with self._lock:
            self._refresh()
            return sum(map(len, self._groups)) - sum(1 for known in self._known.values() if known.brief is None)

    def unreadable(self) -> list[tuple[str, str]]:
        """Return the name of each unreadable run among those examined so far, with the reason, newest first."""
        with self._lock:
            self._refresh()
            read = sorted((name for name, known in self._known.items() if known.brief is None), reverse=True)
            return [(name, now.reason) for name in read if (now := self._looked_at(name, self._known[name])).reason]

    def _refresh(self) -> None:
        """Update the set of run directories, with a single stat call if the store directory has not changed."""
        try:
            status = os.stat(self.root)
            if self._folder == (folder := _trusted(status, 20 * TICK)) and folder:
                return
            with os.scandir(self.root) as entries:
                inodes = {
                    e.name: e.inode() for e in entries if self._is_run(e.name) and e.is_dir(follow_symlinks=False)
                }
        except (FileNotFoundError, NotADirectoryError):
            folder, inodes = None, {}
        self._folder = folder
        if inodes == self._inodes:
            return
        for name in [name for name in self._known if inodes.get(name) != self._inodes.get(name)]:
            del self._known[name]
        self._inodes = inodes
        dated = sorted(((self._minute(name), name) for name in inodes), reverse=True)
        self._groups = [[name for _, name in group] for _, group in groupby(dated, key=lambda pair: pair[0])]
        self._sorted = 0

    def _minute(self, name: str) -> str:
        """Return the minute of a run's creation (UTC), from its name or, if the name is custom, from its state."""
        if match := STAMP.match(name):
            return match.group()
        return time.strftime("%Y%m%d-%H%M", time.gmtime(min(max(0.0, self._first_look(name).created), 2.0**37)))

    def _in_order(self) -> Iterator[str]:
        for number, group in enumerate(self._groups):
            if number == self._sorted:
                group.sort(key=lambda name: (self._first_look(name).created, name), reverse=True)
                self._sorted += 1
            yield from group

    def _first_look(self, name: str) -> RunFacts:
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._read(self.root / name)
        return known

    def _looked_at(self, name: str, known: RunFacts) -> RunFacts:
        """Return the indexed data of a run; `known` if its files are unchanged, otherwise read from them again."""
        files = (known.spec_file, SPEC), (known.state_file, STATE)
        if known.brief and all(then and then == signature(f"{self.root}/{name}/{file}") for then, file in files):
            return known
        known = self._known[name] = self._read(self.root / name)
        return known


def signature(path: str) -> Signature | None:
    """Return the signature of a file, which changes with its contents.

    Returns None if the file is missing, or so young that a further change might leave the signature equal.
    """
    try:
        return _trusted(os.stat(path), TICK)
    except OSError:
        return None


class FileCache(Generic[T]):
    """Thread-safe cache of parsed files. It keeps the `most` last used ones, and reloads a file that has changed."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._kept: OrderedDict[str, tuple[Signature | None, T]] = OrderedDict()

    def get(self, file: str, read: Callable[[], T]) -> T:
        """Return the result of `read()` for `file`, cached until the file changes; exceptions are not cached."""
        now, kept = signature(file), self._kept.pop(file, None)
        if now is None or kept is None or kept[0] != now:
            kept = now, read()
        self._kept[file] = kept
        while len(self._kept) > self.most:
            self._kept.popitem(last=False)
        return kept[1]


def without_name(spec: RunSpec) -> RunSpec:
    """Return a copy of the spec with an empty name; the copies of equal experiments are equal."""
    return spec.model_copy(update={"name": ""})


def _trusted(status: os.stat_result, age: int) -> Signature | None:
    young = time.time_ns() - status.st_mtime_ns < age
    return None if young else (status.st_mtime_ns, status.st_ino, status.st_size)


_listings: dict[str, Listing] = {}
# A forked process would inherit locks held by threads that do not exist in it, so they would never be released.
os.register_at_fork(after_in_child=_listings.clear)


def listing(root: Path, is_run: Callable[[str], object], read: Callable[[Path], RunFacts]) -> Listing:
    """Return the index of directory `root`, which all callers in this process share.

    Args:
        root: Directory of the runs.
        is_run: Predicate that returns True if a directory name may be that of a run.
        read: Function that reads the indexed data of the run in a directory.
    """
    return _listings.setdefault(str(root), Listing(root, is_run, read))
