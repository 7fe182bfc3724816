"""What of a store and of the cache may go by age and number; named first, removed only when asked.

Never touched: what works or waits, the example, a run with a note, tags or views, one that another run
that stays was forked from or starts with, and whatever a study or protocol that is at work needs.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dmlcore.data.files import cache_folder as cache_files
from dmlcore.data.files.locate import cache_folder
from dmlcore.data.shards import pack
from dmlcore.inspection import notes, tags_and_views
from dmlcore.jobs.launch import Job
from dmlcore.storage import locks
from dmlcore.storage.run_directory import KEPT, METRICS, PREV, STATE
from dmlcore.storage.runs import Run, RunError, RunStore

DAY = 86_400.0  # seconds
CLEANED = ".cleaned"  # in a store: its time is that of the last removal
MOST_IDLE = 180.0  # days without a sign of life, after which rather the clock is wrong
STATES = ("done", "failed", "cancelled", "lost")
KEPT_BY_HAND = (notes.FILE, tags_and_views.FILE)
MADE_ONCE = re.compile(r".+-[0-9a-f]{16}(\.staging)?")


@dataclass(frozen=True)
class Rules:
    """Ages in days since something was last written or used; None: that rule is off.

    runs: whole runs whose state is one of `states`, but the `keep` newest of the store. checkpoints: of finished runs
    those kept on the way and the older of the two generations; the last stays, so scores, maps and resuming do.
    cache: unpacked images, features and downloads that nobody has used; they are made again when they are asked for.
    With them go the halves of packings into shards that were stopped and not gone on with.
    """

    runs: float | None = None
    states: tuple[str, ...] = STATES
    keep: int = 0
    checkpoints: float | None = None
    cache: float | None = None

    def __post_init__(self) -> None:
        if self.runs is self.checkpoints is self.cache is None:
            raise ValueError("no rule was given")
        for name in ("runs", "checkpoints", "cache"):
            if (days := getattr(self, name)) is not None and not days >= 0:
                raise ValueError(f"{name}: an age in days is 0 or more, got {days}")
        if self.keep < 0:
            raise ValueError(f"keep: a number of runs is 0 or more, got {self.keep}")
        if unknown := set(self.states) - set(STATES):
            raise ValueError(f"states: {', '.join(sorted(unknown))} is none of {', '.join(STATES)}")


@dataclass(frozen=True)
class Removal:
    """Something that may go: what, where its files lie, their bytes, and days since they were last used."""

    what: str
    paths: tuple[Path, ...]
    run: Run | None  # whose lock is held meanwhile
    whole: bool  # the run itself
    size: int
    age: float


def doubt(store: RunStore) -> str:
    """Return why today's date should be confirmed before anything is removed, or "".

    All ages rest on the clock: with a wrong year every run is old. It is believed if the last removal, or before there
    was any the last write to a run, is not longer than MOST_IDLE ago.
    """
    try:
        then, what = os.stat(store.root / CLEANED).st_mtime, "anything was last removed"
    except OSError:
        then, what = max(map(_written, store.list()), default=time.time()), "any run was last written to"
    idle = (time.time() - then) / DAY
    return f"the clock says {today()}, {idle:,.0f} days after {what}" if idle > MOST_IDLE else ""


def record_removal(store: RunStore) -> None:
    """Note in the store that something is removed now, for the next `doubt`."""
    if store.root.is_dir():
        (store.root / CLEANED).touch()


def today() -> str:
    """Return the date by the clock of this machine, as YYYY-MM-DD."""
    return time.strftime("%Y-%m-%d")


def plan(store: RunStore, rules: Rules) -> list[Removal]:
    """What the rules let go now, the oldest first; nothing is removed."""
    now = time.time()
    runs = list(store.list())
    going = {} if rules.runs is None else _old_runs(runs, rules, now)
    removals = [Removal(f"run {run.id}", (run.path,), run, True, _size(run.path), age) for run, age in going.items()]
    if rules.checkpoints is not None:
        removals += _old_checkpoints([run for run in runs if run not in going], rules.checkpoints, now)
    if rules.cache is not None:
        removals += _unused(cache_folder(), rules.cache, now)
        removals += _half_packed(rules.cache, now)
    return sorted(removals, key=lambda removal: -removal.age)


def apply(removals: Sequence[Removal]) -> Iterator[tuple[Removal, str]]:
    """Remove what a plan names, one by one: each with "" once it is gone, or with why it stays."""
    for removal in removals:
        try:
            if removal.run is not None and removal.whole:
                if _in_use(removal.run) or _by_hand(removal.run):  # since it was planned
                    raise RunError("it is in use again")
                removal.run.delete()
            elif removal.run is not None:
                with removal.run.lock(wait=0.0):
                    for path in removal.paths:
                        path.unlink(missing_ok=True)
            elif not all(map(cache_files.remove, removal.paths)):
                raise locks.Busy("it is being made anew")
        except (OSError, RunError, locks.Busy) as error:
            yield removal, str(error)
        else:
            yield removal, ""


def _old_runs(runs: Sequence[Run], rules: Rules, now: float) -> dict[Run, float]:
    """Runs that may go, with their ages; one that a run that stays came from stays too, and so on up its line."""
    assert rules.runs is not None
    going = {}
    for run in runs[rules.keep :]:
        age = _age(run, now)
        if age >= rules.runs and run.status() in rules.states and not _in_use(run) and not _by_hand(run):
            going[run] = age
    by_id = {run.id: run for run in going}
    needed = [run for run in runs if run not in going]
    while needed:
        for origin in _origins(needed.pop()):
            if origin in by_id:
                needed.append(run := by_id.pop(origin))
                del going[run]
    return going


def _origins(run: Run) -> tuple[str, ...]:
    """Ids of the runs that a run was forked from or that its network starts with."""
    try:
        return tuple(name for name in (run.spec.fork.run, Path(run.spec.model.start or "").name) if name)
    except RunError:
        return ()


def _in_use(run: Run) -> bool:
    """Whether a training or a job works on a run, or waits for its turn."""
    return run.is_busy() or run.is_alive() or Job(run).is_busy()


def _by_hand(run: Run) -> bool:
    return any((run.path / name).exists() for name in KEPT_BY_HAND)


def _old_checkpoints(runs: Sequence[Run], days: float, now: float) -> Iterator[Removal]:
    for run in runs:
        age = _age(run, now)
        paths = tuple(path for path in (*sorted((run.path / KEPT).glob("*.ckpt")), run.path / PREV) if path.is_file())
        if paths and age >= days and run.status() == "done" and not _in_use(run):
            size = sum(map(_size, paths))
            yield Removal(f"{len(paths)} checkpoints of {run.id}", paths, run, False, size, age)


def _age(run: Run, now: float) -> float:
    """Return the days since the run was last written to."""
    return (now - _written(run)) / DAY


def _written(run: Run) -> float:
    """Return when a run was last written to; of one that has no files, now."""
    written = [os.stat(run.path / name).st_mtime for name in (STATE, METRICS) if (run.path / name).exists()]
    return max(written, default=time.time())


def _unused(cache: Path, days: float, now: float) -> Iterator[Removal]:
    """What lies in the cache: folders that were made whole, and what lies in the others; their users note the time."""
    for entry in sorted(set(cache.glob("*")) - {pack.notes_folder()}):
        for path in [entry] if MADE_ONCE.fullmatch(entry.name) else sorted(entry.glob("*")) if entry.is_dir() else []:
            if path.suffix == ".lock" or path.is_symlink():
                continue
            with contextlib.suppress(OSError):  # gone meanwhile
                age = (now - path.stat().st_mtime) / DAY
                if age >= days:
                    name = path.relative_to(cache)
                    yield Removal(f"cached {name}", (path,), None, False, _size(path), age)


def _half_packed(days: float, now: float) -> Iterator[Removal]:
    for staging, note in pack.leftovers():
        with contextlib.suppress(OSError):
            age = (now - max(path.stat().st_mtime for path in (staging, *staging.iterdir()))) / DAY
            if age >= days:
                yield Removal(f"half-packed {staging}", (staging, note), None, False, _size(staging), age)


def _size(path: Path) -> int:
    """Bytes of a file, or of all files below a folder."""
    if path.is_file():
        return path.stat().st_size
    return sum(file.lstat().st_size for file in path.rglob("*") if not file.is_dir())
