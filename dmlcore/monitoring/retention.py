"""Rules that select runs, checkpoints and cache entries for removal by age and number; `apply` removes them.

Some runs are never selected: those with queued or running work, those with a note, tags or saved views, the shipped
example, and all runs on which a remaining run depends (parents of forks and sources of initial backbones).
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
CLEANED = ".cleaned"  # marker file in a store whose modification time is that of the last removal
# beyond this many days without a removal or write, the clock may be wrong, so the user must confirm the date
MAX_IDLE_DAYS = 180.0
STATES = ("done", "failed", "cancelled", "lost")
KEPT_BY_HAND = (notes.FILE, tags_and_views.FILE)
MADE_ONCE = re.compile(r".+-[0-9a-f]{16}(\.staging)?")


@dataclass(frozen=True)
class Rules:
    """Minimum ages for removal, in days since the last write or use; None disables a rule.

    Attributes:
        runs: Age at which a run in one of `states` is removed as a whole, except the `keep` newest runs of the store.
        states: States of runs that may be removed.
        keep: Number of newest runs that are never removed.
        checkpoints: Age at which a finished run loses its kept checkpoints and the older of its last two. The newest
            checkpoint is never removed, so tests, maps and forks remain possible.
        cache: Age at which an unused cache entry (unpacked images, features, downloads) is removed, which is recreated
            on demand, and at which unfinished shards are removed.
    """

    runs: float | None = None
    states: tuple[str, ...] = STATES
    keep: int = 0
    checkpoints: float | None = None
    cache: float | None = None

    def __post_init__(self) -> None:
        if self.runs is self.checkpoints is self.cache is None:
            raise ValueError("no retention rule was given; set runs, checkpoints or cache to an age in days")
        for name in ("runs", "checkpoints", "cache"):
            if (days := getattr(self, name)) is not None and not days >= 0:
                raise ValueError(f"{name}: the age in days must be 0 or more, got {days}")
        if self.keep < 0:
            raise ValueError(f"keep: the number of runs must be 0 or more, got {self.keep}")
        if unknown := set(self.states) - set(STATES):
            raise ValueError(f"states: unknown {', '.join(sorted(unknown))}; expected some of {', '.join(STATES)}")


@dataclass(frozen=True)
class Removal:
    """An item selected for removal: description, paths, size in bytes, and days since the last write or use."""

    what: str
    paths: tuple[Path, ...]
    run: Run | None  # run to be locked during the removal, or None for a cache entry
    whole: bool  # True if the whole run is removed
    size: int
    age: float


def check_clock(store: RunStore) -> str:
    """Return why the user should confirm today's date before a removal, or "" if the clock is plausible.

    Ages depend on the clock: if its year is wrong, every run appears old. The clock is trusted if the last removal or,
    if there was none, the last write to a run was at most MAX_IDLE_DAYS days ago.
    """
    try:
        then, what = os.stat(store.root / CLEANED).st_mtime, "the last removal"
    except OSError:
        then, what = max(map(_last_write, store.list()), default=time.time()), "the last write to a run"
    idle = (time.time() - then) / DAY
    return f"the clock says {today()}, {idle:,.0f} days after {what}" if idle > MAX_IDLE_DAYS else ""


def record_removal(store: RunStore) -> None:
    """Store the time of a removal, as the modification time of a marker file that `check_clock` reads."""
    if store.root.is_dir():
        (store.root / CLEANED).touch()


def today() -> str:
    """Return the date of this machine's clock as YYYY-MM-DD."""
    return time.strftime("%Y-%m-%d")


def plan(store: RunStore, rules: Rules) -> list[Removal]:
    """Return the items that the rules select for removal, oldest first, without removing anything."""
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
    """Remove the items of a plan; yield each with "" or, if it could not be removed, with the reason as a message."""
    for removal in removals:
        try:
            if removal.run is not None and removal.whole:
                if _is_in_use(removal.run) or _is_annotated(removal.run):  # since the plan was made
                    raise RunError("it is in use again")
                removal.run.delete()
            elif removal.run is not None:
                with removal.run.lock(wait=0.0):
                    for path in removal.paths:
                        path.unlink(missing_ok=True)
            elif not all(map(cache_files.remove, removal.paths)):
                raise locks.Busy("it is being recreated")
        except (OSError, RunError, locks.Busy) as error:
            yield removal, str(error)
        else:
            yield removal, ""


def _old_runs(runs: Sequence[Run], rules: Rules, now: float) -> dict[Run, float]:
    """Return the selected runs with their ages in days; runs on which a remaining run depends are not selected."""
    assert rules.runs is not None
    going = {}
    for run in runs[rules.keep :]:
        age = _age(run, now)
        if age >= rules.runs and run.status() in rules.states and not _is_in_use(run) and not _is_annotated(run):
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
    """Return the ids of the runs on which a run depends: its parent and the source of its initial backbone."""
    try:
        return tuple(name for name in (run.spec.fork.run, Path(run.spec.model.start or "").name) if name)
    except RunError:
        return ()


def _is_in_use(run: Run) -> bool:
    """Return True if a training run or job on the run is running or queued."""
    return run.is_busy() or run.is_alive() or Job(run).is_busy()


def _is_annotated(run: Run) -> bool:
    return any((run.path / name).exists() for name in KEPT_BY_HAND)


def _old_checkpoints(runs: Sequence[Run], days: float, now: float) -> Iterator[Removal]:
    for run in runs:
        age = _age(run, now)
        paths = tuple(path for path in (*sorted((run.path / KEPT).glob("*.ckpt")), run.path / PREV) if path.is_file())
        if paths and age >= days and run.status() == "done" and not _is_in_use(run):
            size = sum(map(_size, paths))
            yield Removal(f"{len(paths)} checkpoints of {run.id}", paths, run, False, size, age)


def _age(run: Run, now: float) -> float:
    """Return the days since the last write to the state or metrics of a run."""
    return (now - _last_write(run)) / DAY


def _last_write(run: Run) -> float:
    """Return the time of the last write to the state or metrics of a run, or the current time if it has neither."""
    written = [os.stat(run.path / name).st_mtime for name in (STATE, METRICS) if (run.path / name).exists()]
    return max(written, default=time.time())


def _unused(cache: Path, days: float, now: float) -> Iterator[Removal]:
    """Yield cache entries that were not used for `days` days; using an entry updates its modification time.

    A folder whose name ends with a digest is one entry; in other folders, each item is an entry.
    """
    for entry in sorted(set(cache.glob("*")) - {pack.notes_folder()}):
        for path in [entry] if MADE_ONCE.fullmatch(entry.name) else sorted(entry.glob("*")) if entry.is_dir() else []:
            if path.suffix == ".lock" or path.is_symlink():
                continue
            with contextlib.suppress(OSError):  # removed meanwhile
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
    """Return the size in bytes of a file, or of all files in a folder together."""
    if path.is_file():
        return path.stat().st_size
    return sum(file.lstat().st_size for file in path.rglob("*") if not file.is_dir())
