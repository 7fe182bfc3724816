"""What a store of runs holds, read once: a look costs what has changed, not what is there.

A spec never changes, so what of it a list is searched by is kept for the life of the process; files are read again
where their time, inode or size is another one. Names begin with the minute of creation, so the newest runs are found
without reading the others. All of it is a cache of this process: nothing is stored, and nothing is lost with it.
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
Signature = tuple[int, int, int]  # mtime in ns, inode, bytes
STAMP = re.compile(r"\d{8}-\d{4}(?=-)")  # the minute (UTC) at the beginning of a run id
# A file written again within one tick of the clock of its file system keeps its time: younger ones are not trusted.
TICK = 50_000_000  # ns


@dataclass(frozen=True, slots=True)
class Brief:
    """What of a spec runs are searched by; digest: of the spec without its label, the same for the same experiment."""

    name: str
    protocol: str
    data: str
    model: str
    loss: str
    parent: str  # id of the run it was forked from
    digest: str

    @classmethod
    def of(cls, spec: RunSpec) -> Brief:
        """The brief of a spec."""
        return cls(
            sys.intern(spec.name),
            sys.intern(spec.protocol),
            sys.intern(spec.data.name),
            sys.intern(spec.model.name),
            sys.intern(spec.loss.name),
            sys.intern(spec.fork.run),
            nameless(spec).digest(),
        )


@dataclass(frozen=True, slots=True)
class Known:
    """What was read of one run: brief, when it was created, its recorded state; or why it cannot be read."""

    spec_file: Signature | None  # None: not trusted, or not there
    state_file: Signature | None
    brief: Brief | None
    created: float = 0.0
    state: str = ""
    reason: str = ""


class Listing:
    """The runs below one folder, newest first, for all threads of this process."""

    def __init__(self, root: Path, is_run: Callable[[str], object], read: Callable[[Path], Known]) -> None:
        self.root, self._is_run, self._read = root, is_run, read
        self._lock = threading.RLock()  # one thread reads 10,000 specs, the others wait for them
        self._folder: Signature | None = None
        self._inodes: dict[str, int] = {}  # of all directories here
        self._known: dict[str, Known] = {}
        self._groups: list[list[str]] = []  # names by minute, the newest minute first
        self._sorted = 0  # groups that are in order

    def find(
        self, wanted: Callable[[str, Brief], object], count: int | None = None, state: tuple[str, ...] = ()
    ) -> list[str]:
        """Names of readable runs that fulfil `wanted`, newest first, `count` at most, as they are on disk now.

        state: only those with one of these recorded states, for which every run is looked at.
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
        """Directories that are named like runs, but for those that were found unreadable."""
        with self._lock:
            self._refresh()
            return sum(map(len, self._groups)) - sum(1 for known in self._known.values() if known.brief is None)

    def unreadable(self) -> list[tuple[str, str]]:
        """(name, reason) of those that could not be read, of all that were looked at so far; newest first."""
        with self._lock:
            self._refresh()
            read = sorted((name for name, known in self._known.items() if known.brief is None), reverse=True)
            return [(name, now.reason) for name in read if (now := self._looked_at(name, self._known[name])).reason]

    def _refresh(self) -> None:
        """Which names are there; one look at the folder where it has not changed since."""
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
        """The minute in which a run was created; that of a directory with a name of its own stands in its state."""
        if match := STAMP.match(name):
            return match.group()
        return time.strftime("%Y%m%d-%H%M", time.gmtime(min(max(0.0, self._first_look(name).created), 2.0**37)))

    def _in_order(self) -> Iterator[str]:
        for number, group in enumerate(self._groups):
            if number == self._sorted:
                group.sort(key=lambda name: (self._first_look(name).created, name), reverse=True)
                self._sorted += 1
            yield from group

    def _first_look(self, name: str) -> Known:
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._read(self.root / name)
        return known

    def _looked_at(self, name: str, known: Known) -> Known:
        """What is known of a run, read again if a file of it has changed."""
        files = (known.spec_file, SPEC), (known.state_file, STATE)
        if known.brief and all(then and then == signature(f"{self.root}/{name}/{file}") for then, file in files):
            return known
        known = self._known[name] = self._read(self.root / name)
        return known


def signature(path: str) -> Signature | None:
    """What changes with the contents of a file; None of one that is not there or too young to tell."""
    try:
        return _trusted(os.stat(path), TICK)
    except OSError:
        return None


class FileCache(Generic[T]):
    """What was read of files, of the `most` used last, and is read again when they change; for all threads."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._kept: OrderedDict[str, tuple[Signature | None, T]] = OrderedDict()

    def get(self, file: str, read: Callable[[], T]) -> T:
        """What `read` makes of a file; what it raises is not kept."""
        now, kept = signature(file), self._kept.pop(file, None)
        if now is None or kept is None or kept[0] != now:
            kept = now, read()
        self._kept[file] = kept
        while len(self._kept) > self.most:
            self._kept.popitem(last=False)
        return kept[1]


def nameless(spec: RunSpec) -> RunSpec:
    """The spec without its label: what two runs must share to be the same experiment."""
    return spec.model_copy(update={"name": ""})


def _trusted(status: os.stat_result, age: int) -> Signature | None:
    young = time.time_ns() - status.st_mtime_ns < age
    return None if young else (status.st_mtime_ns, status.st_ino, status.st_size)


_listings: dict[str, Listing] = {}
os.register_at_fork(after_in_child=_listings.clear)  # a lock that another thread holds would stay locked


def listing(root: Path, is_run: Callable[[str], object], read: Callable[[Path], Known]) -> Listing:
    """The one listing of a folder in this process."""
    return _listings.setdefault(str(root), Listing(root, is_run, read))
