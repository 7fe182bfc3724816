"""Run store with one directory per run, readable after a crash at any point; see docs/architecture.md."""

from __future__ import annotations

import errno
import logging
import os
import platform
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from dmlcore.catalogue import FROM_DATA
from dmlcore.spec import RunSpec, SpecError, own_network
from dmlcore.spec.sections import IDENTITY
from dmlcore.storage import atomic_files, fork_parent, leftovers, locks, metrics_rows
from dmlcore.storage.home import HOME
from dmlcore.storage.listing import Brief, FileCache, Listing, RunFacts, listing, signature
from dmlcore.storage.metrics_rows import Row
from dmlcore.storage.run_directory import EMBEDDINGS, LOCK, METRICS, SET, SPEC, STATE
from dmlcore.storage.task import MAX_STATE_BYTES, Task, TaskState, Text

RUN_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")  # no leading hyphen, since commands would parse such an id as an option
EXAMPLE = (
    "example-glyphs"  # id of the run that ships with the lab (`dmlcore.experiments.example`); excluded from listings
)
# marker file in a store from which the user deleted the example, so that it is not restored
EXAMPLE_REMOVED = ".example-removed"
log = logging.getLogger(__name__)
State = Literal["queued", "running", "done", "failed", "cancelled"]

# Allowed state transitions. Only the holder of the lock may record one; "queued" after another state is a resume.
_NEXT: dict[State, frozenset[State]] = {
    "queued": frozenset(("queued", "running", "failed", "cancelled")),
    "running": frozenset(("running", "queued", "done", "failed", "cancelled")),
    "done": frozenset(("done", "queued")),
    "failed": frozenset(("failed", "queued")),
    "cancelled": frozenset(("cancelled", "queued")),
}


MAX_PROCESSES = 4096
MAX_SLUG_LENGTH = 20  # maximum number of characters of each word in a run id


class RunError(RuntimeError):
    """Error for a run that is unknown, unreadable or in an unsuitable state; the message names the problem."""


Count = Annotated[int, Field(ge=0, le=metrics_rows.MAX_COUNT)]
# seconds since 1970 up to the year 2242, which tables can still display
Seconds = Annotated[float, Field(ge=0, le=2**33, allow_inf_nan=False)]


class RunState(TaskState):
    """Contents of a run's state.json."""

    state: State = "queued"
    step: Count = 0  # finished optimiser steps
    steps: Count = 0  # planned optimiser steps
    seconds: Seconds = 0.0  # training time, summed over all resumes
    device: Text = ""
    host: Text = ""  # name of the machine of the last worker
    processes: Annotated[int, Field(ge=1, le=MAX_PROCESSES)] = 1  # number of data-parallel processes
    created: Seconds = 0.0  # wall-clock time of creation, for display and sorting only


class Run(Task[RunState]):
    """A training run: its directory and its background task. Its files may be written only while `lock()` is held."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, RunState)
        self.id = path.name

    def __repr__(self) -> str:
        return f"Run({self.id})"

    @property
    def is_example(self) -> bool:
        """True for the example run that ships with the lab."""
        return self.id == EXAMPLE

    @property
    def is_embedding_set(self) -> bool:
        """True for imported embeddings (`dmlcore.experiments.embedding_sets`), which no network here computed."""
        return self.spec.model.name == IDENTITY

    @property
    def is_logged(self) -> bool:
        """True for a run that a program outside DML Lab trains (`dmlcore.log_run`), until it stores its embeddings."""
        return self.is_embedding_set and not (self.path / SET).is_dir()

    @cached_property
    def spec(self) -> RunSpec:
        """Spec of the run, which never changes; raises RunError if spec.json is damaged or cannot be interpreted."""
        return _specs.get(f"{self.path}/{SPEC}", lambda: _read_spec(self.path))

    def spec_as_trained(self) -> RunSpec:
        """Return the spec with the number in place of a margin chosen from the data, see `with_chosen_margin`."""
        return (
            self.spec
            if FROM_DATA not in self.spec.loss.parameters.values()
            else with_chosen_margin(self.spec, self.metrics()[0])
        )

    def state(self) -> RunState:
        """Return the last recorded state; raises RunError if state.json is damaged."""
        return _states.get(f"{self.path}/{STATE}", lambda: _read_state(self.path))

    def status(self) -> str:
        """Return the state to display; "unreadable" if the run was deleted or damaged since it was listed."""
        try:
            return super().status()
        except RunError:
            return "unreadable"

    def metrics(self, since: int = 0) -> tuple[list[Row], int]:
        """Return the complete rows of metrics.jsonl from byte `since` on, and the offset for the next call.

        A truncated last line is left for the next call; a damaged line is skipped. `metrics_rows` describes the rows.
        If a resume has shortened the file so that `since` is not the start of a line, all rows are returned again, so
        callers should store rows by (kind, step). A file of more than metrics_rows.MAX_FILE_BYTES bytes is treated as
        empty.
        """
        path = self.path / METRICS
        try:
            with atomic_files.open_regular(path, metrics_rows.MAX_FILE_BYTES) as file:
                if since:
                    file.seek(since - 1)
                    if file.read(1) != b"\n":
                        since = 0
                file.seek(since)
                text = file.read()
        except FileNotFoundError:
            return [], 0
        # Return the size as the offset for the next call: a writer that starts from this offset must not truncate the
        # file.
        except OSError as error:
            log.warning("%s: metrics.jsonl cannot be read: %s", self.id, error)
            return [], path.stat().st_size
        whole = text[: text.rfind(b"\n") + 1]
        return [row for line in whole.splitlines() if (row := metrics_rows.from_line(line))], since + len(whole)

    def scores(self) -> dict[str, Row]:
        """Return the last test scores by representation, as the function `scores` does; parses only score rows."""
        return scores(self._rows(b'"scores"'))

    def best_validation(self) -> float | None:
        """Return the best validation MAP@R in 0..1, or None if there was no validation; parses only validation rows."""
        return best_validation(self._rows(b'"validation"'))

    def _rows(self, mark: bytes) -> Iterator[Row]:
        """Yield the complete rows whose lines contain the bytes `mark`; other lines are not parsed."""
        try:
            lines = atomic_files.read_bytes(self.path / METRICS, metrics_rows.MAX_FILE_BYTES).split(b"\n")[:-1]
        except FileNotFoundError:
            return
        except OSError as error:
            log.warning("%s: metrics.jsonl cannot be read: %s", self.id, error)
            return
        yield from (row for line in lines if mark in line and (row := metrics_rows.from_line(line)))

    def embeddings(self) -> Path | None:
        """Return the newest embeddings file (arrays embeddings, labels, indices), or None if there is none."""
        # skip files derived from embeddings, which are named DIGEST.KIND.npz
        return self._newest(lambda name: "." not in name.removesuffix(".npz"))

    def projection(self) -> Path | None:
        """Return the file of the newest two-dimensional map of the newest embeddings, or None if there is none.

        Its array "points" has one row per embedding.
        """
        source = self.embeddings()
        prefix = f"{source.stem}." if source else "none"
        return self._newest(lambda name: name.startswith(prefix) and name.endswith(".map.npz"))

    def _newest(self, wanted: Callable[[str], bool]) -> Path | None:
        names = [p for p in (self.path / EMBEDDINGS).glob("*.npz") if wanted(p.name) and not p.name.startswith(".")]
        return next(iter(atomic_files.newest_first(names)), None)

    def lock(self, wait: float = 2.0) -> locks.ProcessLock:
        """Return the lock that the worker of the run holds, a context manager.

        Raises:
            RunError: The directory contains a symbolic link. A directory copied from another user could otherwise make
                this process write to files elsewhere.
            locks.Busy: On entering, if another process is working on the run.
        """
        with os.scandir(self.path) as entries:
            links = sorted(entry.name for entry in entries if entry.is_symlink())
        if links:
            raise RunError(
                f"{self.id}: {', '.join(links)} is a link, and writing would change its target; copy the run with "
                "cp -rL"
            )
        return super().lock(wait)

    def update(self, **changes: Any) -> RunState:
        """Record `changes` in state.json; raises RunError without the lock or for a forbidden state transition."""
        if not locks.is_held_here(self.path / LOCK):
            raise RunError(f"{self.id}: only the holder of the lock may change the state")
        before = self.state()
        after = before.replace(**changes)
        if after.state not in _NEXT[before.state]:
            raise RunError(f"{self.id}: a run cannot change from {before.state} to {after.state}")
        return self.record(after)

    def mark_running(self) -> RunState:
        """Record this process as the worker that trains the run; remove partial files left by a killed process."""
        leftovers.sweep_files(self.path)
        worker = {"pid": os.getpid(), "started": locks.start_time(os.getpid()), "host": platform.node()}
        return self.update(state="running", message="starting", **worker)

    def delete(self) -> None:
        """Remove the run and all its files; raises locks.Busy while a process is working on it."""
        with super().lock(wait=0.0):
            if self.is_example:
                (self.path.parent / EXAMPLE_REMOVED).touch()
            gone = self.path.with_name(f"{leftovers.DELETED}{self.id}")
            self.path.rename(gone)  # from here on the run cannot be opened
            leftovers.remove(gone)


class MetricsWriter:
    """Writer that appends rows to metrics.jsonl.

    The file is first truncated to `offset` bytes, so that a resumed run neither repeats nor skips a step. Each row is
    written by a single call, so kill -9 never leaves a partial row. Rows contain no clock time, so a resumed run writes
    exactly the rows that were truncated.
    """

    def __init__(self, run: Run, offset: int) -> None:
        descriptor = os.open(run.path / METRICS, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._file = open(descriptor, "r+b", buffering=0)  # noqa: SIM115 - closed by __exit__
        size = self._file.seek(0, os.SEEK_END)
        if size < offset:
            self._file.close()
            raise RunError(
                f"{run.id}: metrics.jsonl has {size} bytes instead of the {offset} recorded in the checkpoint; it "
                "was truncated"
            )
        self._file.truncate(offset)
        self.offset = self._file.seek(offset)

    def __enter__(self) -> MetricsWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, row: Row) -> None:
        """Write one row; if the disk is full, raises OSError and leaves the file unchanged."""
        line = metrics_rows.to_line(row)
        if self._file.write(line) != len(line):
            self._file.truncate(self.offset)
            self._file.seek(self.offset)
            raise OSError(errno.ENOSPC, "no space left for a row", METRICS)
        self.offset += len(line)

    def sync(self) -> int:
        """Flush all rows to disk and return the length of the file in bytes."""
        os.fsync(self._file.fileno())
        return self.offset


class RunStore:
    """Store of all runs in one directory, by default $DML_RUNS or ./runs in the repository.

    Listings exclude the shipped example, so that it is never ranked or counted; `open` returns it by its id.
    """

    def __init__(self, root: str | Path | None = None) -> None:
        chosen = root or os.environ.get("DML_RUNS") or HOME / "runs"
        self.root = Path(chosen).expanduser().resolve()

    def create(self, spec: RunSpec, run_id: str = "") -> Run:
        """Create a new, queued run; its directory appears under the run's id only when it is complete.

        Args:
            spec: Spec of the run.
            run_id: Result of `free_id`; "" for a new one.

        Raises:
            SpecError: The spec forks a run or step that does not exist, or names a network of the user that this
                process may not import.
            OSError: The disk is full; nothing is left behind.
        """
        if reason := own_network.refusal(spec.model.name):
            raise SpecError(f"model.name: {reason}")
        run_id = run_id or self.free_id(spec.data.name, spec.loss.name)
        return self.put(run_id, lambda building: self._build(building, spec))

    def put(self, run_id: str, build: Callable[[Path], object]) -> Run:
        """Create a run directory filled by `build`; it appears under the id `run_id` only when it is complete."""
        self.root.mkdir(parents=True, exist_ok=True)
        leftovers.sweep_folders(self.root)
        building = self.root / f"{leftovers.NEW}{run_id}"
        building.mkdir()
        try:
            with locks.ProcessLock(building / LOCK):
                build(building)
                building.rename(self.root / run_id)
        except BaseException:
            leftovers.remove(building)
            raise
        atomic_files.sync_directory(self.root)
        return Run(self.root / run_id)

    def add(self, spec: RunSpec, run_id: str, fill: Callable[[Path], tuple[str, Sequence[Row]]]) -> Run:
        """Create a finished run that was not trained here, such as an imported embedding set.

        Args:
            spec: Spec of the run.
            run_id: Result of `free_id`.
            fill: Function that writes the contents into the given directory, which has a folder for embeddings, and
                returns the message of the final state and the metrics rows.

        Raises:
            OSError: The disk is full; nothing is left behind.
        """
        return self.put(run_id, lambda building: self._fill(building, spec, fill))

    def _fill(self, building: Path, spec: RunSpec, fill: Callable[[Path], tuple[str, Sequence[Row]]]) -> None:
        started = time.time()
        self._build(building, spec)
        message, rows = fill(building)
        (building / METRICS).write_bytes(b"".join(map(metrics_rows.to_line, rows)))
        state = RunState(state="done", message=message, created=started, seconds=time.time() - started)
        atomic_files.replace_json(building / STATE, state.model_dump())

    def free_id(self, *words: str) -> str:
        """Return an unused run id made of the time, the words and a random suffix.

        The suffix has only 16 bits, so it alone may repeat among ids of the same minute.
        """
        while True:
            run_id = _new_id(words)
            if not any((self.root / f"{prefix}{run_id}").exists() for prefix in ("", leftovers.NEW, leftovers.DELETED)):
                return run_id

    def _build(self, building: Path, spec: RunSpec) -> None:
        (building / METRICS).touch()
        (building / EMBEDDINGS).mkdir()
        if spec.fork.run:
            fork_parent.copy_checkpoint(building, self.root, spec.fork)
        atomic_files.replace(building / SPEC, lambda file: file.write(spec.to_json().encode()))
        now = {"created": time.time(), "queued": time.monotonic(), "boot": locks.current_boot()}
        state = RunState(steps=spec.schedule.steps, **now)
        atomic_files.replace_json(building / STATE, state.model_dump())

    def open(self, run_id: str) -> Run:
        """Return the run with this id; raises RunError if there is none."""
        if isinstance(run_id, str) and RUN_ID.fullmatch(run_id):
            path = self.root / run_id
            if not path.is_symlink() and path.resolve().is_relative_to(self.root) and (path / SPEC).is_file():
                return Run(path)
        raise RunError(f"no run {str(run_id)[:64]!r} in {self.root}")

    def list(self) -> Sequence[Run]:
        """Return the readable runs, newest first. All runs are examined; use `newest` or `find` if a few suffice."""
        return self.find(lambda run_id, brief: True)

    def newest(self, count: int) -> Sequence[Run]:
        """Return the `count` newest readable runs, newest first; older ones are not read."""
        return self.find(lambda run_id, brief: True, count)

    def find(
        self, wanted: Callable[[str, Brief], object], count: int | None = None, state: tuple[State, ...] = ()
    ) -> Sequence[Run]:
        """Return the readable runs that match, newest first.

        Args:
            wanted: Predicate on a run's id and searchable fields.
            count: Maximum number of runs.
            state: If given, only runs with one of these recorded states.
        """
        return [Run(self.root / name) for name in self._listing().find(wanted, count, state)]

    def count(self) -> int:
        """Return the number of runs, not counting those known to be unreadable."""
        return self._listing().count()

    def unreadable(self) -> Sequence[tuple[str, str]]:
        """Return the id of each unreadable run among those examined so far, with the reason.

        `list` examines all runs; `newest` and `find` examine only as many as they need.
        """
        return self._listing().unreadable()

    def _listing(self) -> Listing:
        return listing(self.root, _is_listed, _read)


def open_run(run: Run | str | Path) -> Run:
    """Return a run; raises RunError if there is none.

    Args:
        run: A run, its folder, or its id in the default store ($DML_RUNS, else ./runs).
    """
    if isinstance(run, Run):
        return run
    path = Path(run).expanduser()
    return Run(path.resolve()) if (path / SPEC).is_file() else RunStore().open(str(run))


def _is_listed(name: str) -> bool:
    return RUN_ID.fullmatch(name) is not None and name != EXAMPLE


_specs: FileCache[RunSpec] = FileCache(1000)  # 12 kB each
_states: FileCache[RunState] = FileCache(1000)


def _read_spec(path: Path) -> RunSpec:
    try:
        return RunSpec.from_json(atomic_files.read_bytes(path / SPEC, MAX_STATE_BYTES).decode())
    except (OSError, UnicodeDecodeError, SpecError) as error:
        raise RunError(f"{path.name}: spec.json cannot be read: {error}") from None


def _read_state(path: Path) -> RunState:
    try:
        return RunState.model_validate_json(atomic_files.read_bytes(path / STATE, MAX_STATE_BYTES))
    except (OSError, ValidationError) as error:
        raise RunError(f"{path.name}: state.json cannot be read: {error}") from None


def _read(path: Path) -> RunFacts:
    """Read the data of a run for the index.

    Signatures are taken before the files are read, so that a file replaced in between is read again later.
    """
    files = signature(f"{path}/{SPEC}"), signature(f"{path}/{STATE}")
    try:
        spec, state = _read_spec(path), _read_state(path)
    except RunError as error:
        return RunFacts(*files, None, reason=str(error))
    return RunFacts(*files, Brief.of(spec), state.created, state.state)


def series(rows: Iterable[Row], kind: str, field: str) -> tuple[list[int], list[float]]:
    """Return the steps and values of `field` in the rows of `kind`, sorted by step.

    If several rows have the same step, the last one is used.
    """
    by_step = {row["step"]: row[field] for row in rows if row.get("kind") == kind and row.get(field) is not None}
    return sorted(by_step), [by_step[step] for step in sorted(by_step)]


def with_chosen_margin(spec: RunSpec, rows: Iterable[Row]) -> RunSpec:
    """Return the spec with the number that was chosen from the data in place of a loss margin "data".

    Args:
        spec: Spec of a run.
        rows: Metrics rows of the run, whose measurements contain the margin. Without measurements the default of the
            loss takes its place.
    """
    parameters = spec.loss.parameters
    if FROM_DATA not in parameters.values():
        return spec
    numbers = series(rows, "measure", "margin")[1][-1:]
    settled = {k: v for k, v in parameters.items() if v != FROM_DATA}
    settled |= {k: number for k, v in parameters.items() if v == FROM_DATA for number in numbers}
    return spec.model_copy(update={"loss": spec.loss.model_copy(update={"parameters": settled})})


def candidate_validations(rows: Iterable[Row]) -> list[Row]:
    """Return the validation rows from which the best weights, those scored on the test split, were selected.

    For an embedding conditioned on neighbours, these are the rows since conditioning started, otherwise all rows.
    """
    every = [row for row in rows if row.get("kind") == "validation"]
    return [row for row in every if "alone_map_at_r" in row] or every


def best_validation(rows: Iterable[Row]) -> float | None:
    """Return the best MAP@R in 0..1 of the rows of `candidate_validations`, or None if there is none.

    Rows that monitor another split than the validation split, such as the test split, are left out.
    """
    on_validation = candidate_validations(row for row in rows if "part" not in row)
    return max((row["map_at_r"] for row in on_validation if row["map_at_r"] is not None), default=None)


def scores(rows: Iterable[Row]) -> dict[str, Row]:
    """Return the last test scores of each representation.

    Keys are "inputs" (raw input), "untrained" and "trained". An embedding conditioned on neighbours adds "alone"
    (scores before conditioning), and "inductive" or "transductive" for the evaluation that "trained" does not use.
    """
    return {row["of"]: row for row in rows if row.get("kind") == "scores"}


def _new_id(words: Sequence[str]) -> str:
    """Return a new id such as 20261121-0412-digits-ranking-ab12, with characters of RUN_ID only."""

    def slug(text: str) -> str:
        return re.sub(r"[^a-z0-9]+", "-", text.lower())[:MAX_SLUG_LENGTH].strip("-") or "x"

    stamp = time.strftime("%Y%m%d-%H%M", time.gmtime())
    return "-".join([stamp, *map(slug, words), secrets.token_hex(2)])
