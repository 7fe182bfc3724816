"""Runs one after another, found by what they are: what studies, protocols and searches have in common.

A place is a folder in the run store: `lock` (held while its runs are made), `state.json` (what was asked for and where
it stands), `cancel` (a request) and `log.txt`. Its runs are ordinary runs of the store, found by their spec.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from dmlcore import data
from dmlcore.experiments.studies.spec import PRETRAINING, StudyRun
from dmlcore.inspection.local import weight_maps
from dmlcore.jobs import launch
from dmlcore.spec import RunSpec
from dmlcore.storage import atomic_files, locks
from dmlcore.storage.home import HOME
from dmlcore.storage.listing import nameless
from dmlcore.storage.runs import START_GRACE, Run, RunError, RunStore

LOOK = 0.2  # seconds between two looks at the run in work
log = logging.getLogger(__name__)


class PlaceState(BaseModel):
    """The contents of state.json; unknown keys of later releases are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    state: Literal["queued", "running", "done", "incomplete", "cancelled"] = "queued"
    message: str = ""
    run: str = ""  # id of the run in work
    pid: int = 0  # who conducts it, and when that process started (clock ticks since boot)
    started: int | None = None
    queued: float = 0.0  # time.monotonic(), which all processes share until the next boot,
    boot: str = ""  # and which boot that was


S = TypeVar("S", bound=PlaceState)


@dataclass(frozen=True)
class BatchFolder(Generic[S]):
    """Where runs are made one after another; readers never need whoever makes them alive."""

    path: Path
    kind: type[S]

    def state(self) -> S | None:
        """What was recorded last; None if the study was never asked for here, or the file is damaged."""
        try:
            return self.kind.model_validate_json((self.path / "state.json").read_bytes())
        except (OSError, ValidationError):
            return None

    def status(self) -> Literal["never", "queued", "running", "done", "incomplete", "cancelled", "lost"]:
        """The state as shown: lost if it should be running and nobody holds the lock."""
        alive = self.alive()  # before the state: a conductor records its end before it drops the lock
        state = self.state()
        if state is None:
            return "running" if alive else "never"
        if alive or state.state not in ("queued", "running"):
            return "running" if alive else state.state
        return "queued" if starting(state) else "lost"

    def alive(self) -> bool:
        """Whether some process conducts it now."""
        return locks.holder(self.path / "lock") != 0

    def busy(self) -> bool:
        """Whether it is conducted, or about to be."""
        return self.status() in ("queued", "running")

    def cancel_requested(self) -> bool:
        """Whether a cancel is waiting to be honoured."""
        return (self.path / "cancel").exists()

    def log_tail(self, lines: int = 20) -> list[str]:
        """The last lines of log.txt."""
        try:
            return (self.path / "log.txt").read_bytes()[-65536:].decode(errors="replace").splitlines()[-lines:]
        except FileNotFoundError:
            return []

    def record(self, state: S) -> S:
        """Replace state.json; for the holder of the lock."""
        atomic_files.replace_json(self.path / "state.json", state.model_dump())
        return state


def detach(place: BatchFolder[S], request: S, arguments: Sequence[str]) -> None:
    """Start `python -m dmlcore ARGUMENTS`, which makes the runs of a place, detached, with log.txt as its output.

    request: the state to record. Raises durable.Busy where somebody makes them, or is about to.
    """
    place.path.mkdir(parents=True, exist_ok=True)
    with locks.ProcessLock(place.path / "lock", wait=0.0):
        if (state := place.state()) and starting(state):
            raise locks.Busy
        (place.path / "cancel").unlink(missing_ok=True)
        now = {"queued": time.monotonic(), "boot": locks.boot()}
        place.record(request.model_copy(update=now | {"state": "queued", "message": "about to start"}))
    command = [sys.executable, "-m", "dmlcore", *arguments, "--runs", str(place.path.parents[1])]
    with open(place.path / "log.txt", "ab") as log:
        process = subprocess.Popen(
            command, cwd=HOME, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    threading.Thread(target=process.wait, daemon=True).start()  # leave no zombie behind in a long-lived server


def find(entries: Sequence[StudyRun], store: RunStore) -> list[Run | None]:
    """The run of each entry, or None: of all runs with its spec, whatever their name, the one that is done.

    Of several the first that was made, so that a later one changes nothing; without a done one the furthest.
    """
    found = _made({number: entry.spec for number, entry in enumerate(entries) if entry.starts is None}, store)
    pretrained = {
        _what(entries[number].spec): run.id for number, run in found.items() if entries[number].variant == PRETRAINING
    }
    started: dict[int, RunSpec] = {}
    for number, entry in enumerate(entries):
        if entry.starts is not None and (run_id := pretrained.get(_what(entry.starts))):
            started[number] = entry.after(run_id)
    found |= _made(started, store) if started else {}
    return [found.get(number) for number in range(len(entries))]


def _made(specs: Mapping[int, RunSpec], store: RunStore) -> dict[int, Run]:
    """The best run of each of these specs that has any."""
    wanted = {number: _what(spec) for number, spec in specs.items()}
    digests = set(wanted.values())
    by_digest: dict[str, list[Run]] = {}
    for made in reversed(store.find(lambda run_id, brief: brief.digest in digests)):  # oldest first
        with contextlib.suppress(RunError):  # deleted this very moment
            by_digest.setdefault(_what(made.spec), []).append(made)
    best = {digest: _best(runs) for digest, runs in by_digest.items()}
    return {number: run for number, digest in wanted.items() if (run := best.get(digest))}


def refuse_missing_data(entries: Sequence[StudyRun]) -> None:
    """Raise DataError for the first data set that is not there; it says where it looked."""
    for name, root in {(entry.spec.data.name, entry.spec.data.root): None for entry in entries}:
        if data.available(name, root) is None:
            data.locate(name, root)


def make(
    entries: Sequence[StudyRun],
    store: RunStore,
    place: BatchFolder[S],
    request: S,
    *,
    report: Callable[[str], object] = log.info,
    stop: Callable[[], bool] = lambda: False,
) -> S:
    """Make the runs of the entries that are not done, one after another, each in a process of its own.

    Done runs are kept, lost, cancelled and failed ones resumed, missing ones trained; one that fails costs only itself
    and what starts from it. request: the first state to record. stop() is asked a few times a second, as is the cancel
    file. Raises durable.Busy if another process is at work in this place, DataError.
    """
    refuse_missing_data(entries)
    place.path.mkdir(parents=True, exist_ok=True)
    with locks.ProcessLock(place.path / "lock", wait=0.5):
        waiting = place.state()
        asked = place.cancel_requested()
        (place.path / "cancel").unlink(missing_ok=True)
        # A cancel that came before this process ends it; an older one is void.
        if asked and waiting and waiting.state == "cancelled" and _recent(waiting):  # before this process came
            return waiting
        pid = os.getpid()
        mine = {"state": "running", "pid": pid, "started": locks.start_time(pid)}
        state = place.record(request.model_copy(update=mine))

        def stopped() -> bool:
            return stop() or place.cancel_requested()

        failed: list[str] = []
        for number, entry in enumerate(entries, 1):
            # The last one's run; the entries before it say which pretrained run it starts from.
            run = find(entries[:number], store)[-1]
            label = f"[{number}/{len(entries)}] {entry.variant}, seed {entry.seed}"
            if not (run and run.state().state == "done"):
                run = run or _create(entry, entries, store)
                if run is None:
                    report(f"{label}: left out, as its pretraining is not done")
                    failed.append(label)
                    continue
                state = place.record(state.model_copy(update={"run": run.id, "message": label}))
                report(f"{label}: {run.id}")
                work_on(run, stopped)
                if stopped():
                    report("stopped as asked; the same command goes on from there")
                    (place.path / "cancel").unlink(missing_ok=True)
                    return place.record(state.model_copy(update={"state": "cancelled", "message": "cancelled"}))
            _weigh(run)
            report(f"{label}: {run.id} {run.status()}, {run.state().message}")
            if run.state().state != "done":
                failed.append(label)
        message = f"{len(failed)} of {len(entries)} runs are not done: {'; '.join(failed)}" if failed else "all done"
        end = {"state": "incomplete" if failed else "done", "message": message, "run": ""}
        return place.record(state.model_copy(update=end))


def work_on(run: Run, stopped: Callable[[], bool]) -> None:
    """Train or resume a run in a process of its own and wait for its end; with stopped() it ends after its step."""
    process = None
    if not run.alive():
        with run.lock():
            launch.prepare_resume(run)
        process = launch.start(run, "train")
    asked = False
    while process.poll() is None if process else run.alive():  # without a process: somebody else is at it
        if stopped() and not asked:
            launch.cancel(run)
            asked = True
        time.sleep(LOOK)


def _create(entry: StudyRun, entries: Sequence[StudyRun], store: RunStore) -> Run | None:
    """A new run for an entry, or None where what it starts from is not done."""
    if entry.starts is None:
        return store.create(entry.spec)
    before = [e for e in entries if e.variant == PRETRAINING and e.spec == entry.starts]
    run = find(before, store)[0]
    return store.create(entry.after(run.id)) if run and run.state().state == "done" else None


def _weigh(run: Run) -> None:
    """Write the weight maps of a finished run on collages, whose foreground tile is known; a failure is in its log."""
    on_collages = data.describe(run.spec.data.name).grid > 0
    if on_collages and run.state().state == "done" and weight_maps.path_of(run) is None:
        launch.start(run, "weigh").wait()


def _best(runs: Sequence[Run]) -> Run | None:
    """Of runs with one spec, oldest first: the first that is done, else the furthest."""
    states = []
    for run in runs:
        with contextlib.suppress(RunError):  # deleted this very moment
            states.append((run, run.state()))
    done = [run for run, state in states if state.state == "done"]
    return done[0] if done else max(states, key=lambda pair: pair[1].step, default=(None, None))[0]


def starting(state: PlaceState) -> bool:
    """Whether a process was launched for this state and may still be on its way."""
    return state.state == "queued" and _recent(state)


def _recent(state: PlaceState) -> bool:
    """Whether the process that was launched for this state may still be on its way."""
    return locks.elapsed(state.queued, state.boot) < START_GRACE


def _what(spec: RunSpec) -> str:
    return nameless(spec).digest()
