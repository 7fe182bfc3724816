"""The runs of a study, one after another: which are there, which are missing, and a process that makes them.

A study owns nothing but `.studies/NAME` in the run store: `lock` (held while it is conducted), `state.json` (what was
asked for and where it stands), `cancel` (a request) and `log.txt`. Its runs are ordinary runs, found by their spec.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from dmlcore import data, durable, jobs, weight_maps
from dmlcore.jobs import JobError
from dmlcore.runs import START_GRACE, Run, RunError, RunStore
from dmlcore.studies.spec import PRETRAINING, Entry, expand, nameless, path_of, read

LOOK = 0.2  # seconds between two looks at the run in work
REPOSITORY = Path(__file__).resolve().parents[2]
log = logging.getLogger(__name__)


class Request(BaseModel):
    """What of a study was asked for: its name or file, and what narrows or changes it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    study: str
    overrides: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    only: tuple[str, ...] = ()

    def entries(self) -> list[Entry]:
        """Its runs; raises SpecError."""
        return expand(read(self.study), self.seeds or None, self.only, self.overrides)

    def arguments(self) -> list[str]:
        """The same as arguments of `python -m dmlcore study`."""
        seeds = ["--seeds", ",".join(map(str, self.seeds))] if self.seeds else []
        return [self.study, *self.overrides, *seeds, *(word for name in self.only for word in ("--only", name))]


class StudyState(BaseModel):
    """The contents of state.json; unknown keys of later releases are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    request: Request
    state: Literal["queued", "running", "done", "incomplete", "cancelled"] = "queued"
    message: str = ""
    run: str = ""  # id of the run in work
    pid: int = 0  # who conducts it, and when that process started (clock ticks since boot)
    started: int | None = None
    queued: float = 0.0  # time.monotonic(), which all processes share until the next boot


@dataclass(frozen=True)
class Conduct:
    """The folder of a study in a run store; readers never need the conductor alive."""

    path: Path

    def state(self) -> StudyState | None:
        """What was recorded last; None if the study was never conducted here, or the file is damaged."""
        try:
            return StudyState.model_validate_json((self.path / "state.json").read_bytes())
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
        return "queued" if _starting(state) else "lost"

    def alive(self) -> bool:
        """Whether some process conducts it now."""
        return durable.holder(self.path / "lock") != 0

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

    def record(self, state: StudyState) -> StudyState:
        """Replace state.json; for the holder of the lock."""
        durable.replace_json(self.path / "state.json", state.model_dump())
        return state


def conduct_of(name: str, store: RunStore) -> Conduct:
    """Where the study of that name or file is conducted in `store`; raises SpecError if there is no such study."""
    return Conduct(store.root / ".studies" / path_of(name).stem)


def find(entries: Sequence[Entry], store: RunStore) -> list[Run | None]:
    """The run of each entry, or None: of all runs with its spec, whatever their name, the one that is done.

    Of several the first that was made, so that a later one changes nothing; without a done one the furthest.
    """
    by_spec: dict[str, list[Run]] = {}
    for known in reversed(store.list()):  # oldest first
        by_spec.setdefault(nameless(known.spec).to_json(), []).append(known)
    found: list[Run | None] = []
    pretrained: dict[int, str] = {}
    for entry in entries:
        run: Run | None = None
        if entry.starts is None or entry.seed in pretrained:
            spec = entry.after(pretrained.get(entry.seed))
            run = _best(by_spec.get(nameless(spec).to_json(), []))
        if run and entry.variant == PRETRAINING:
            pretrained[entry.seed] = run.id
        found.append(run)
    return found


def launch(request: Request, store: RunStore) -> None:
    """Start `python -m dmlcore study` for the request as one detached process, with log.txt as its output.

    Raises JobError while the study is being conducted, DataError if data are missing, SpecError.
    """
    entries = request.entries()
    refuse_missing_data(entries)
    conduct = conduct_of(request.study, store)
    conduct.path.mkdir(parents=True, exist_ok=True)
    try:
        with durable.ProcessLock(conduct.path / "lock", wait=0.0):
            if (state := conduct.state()) and _starting(state):
                raise durable.Busy
            (conduct.path / "cancel").unlink(missing_ok=True)
            conduct.record(StudyState(request=request, queued=time.monotonic(), message="about to start"))
    except durable.Busy:
        raise JobError(f"the study {conduct.path.name} is running already; watch it, or cancel it first") from None
    command = [sys.executable, "-m", "dmlcore", "study", *request.arguments(), "--runs", str(store.root)]
    with open(conduct.path / "log.txt", "ab") as output:
        process = subprocess.Popen(
            command, cwd=REPOSITORY, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    threading.Thread(target=process.wait, daemon=True).start()  # leave no zombie behind in a long-lived server


def cancel(conduct: Conduct) -> None:
    """End the study and its run after the current step, keeping everything; a run that goes on alone ends too."""
    state = conduct.state()
    if state is None or state.state not in ("queued", "running"):
        return
    (conduct.path / "cancel").touch()
    try:
        with durable.ProcessLock(conduct.path / "lock", wait=0.0):  # nobody conducts it
            conduct.record(state.model_copy(update={"state": "cancelled", "message": "cancelled"}))
    except durable.Busy:
        return  # the conductor sees the request
    with contextlib.suppress(RunError):  # deleted
        jobs.cancel(RunStore(conduct.path.parents[1]).open(state.run))


def refuse_missing_data(entries: Sequence[Entry]) -> None:
    """Raise DataError for the first data set that is not there; it says where it looked."""
    for name, root in {(entry.spec.data.name, entry.spec.data.root): None for entry in entries}:
        if data.available(name, root) is None:
            data.locate(name, root)


def conduct(
    request: Request,
    store: RunStore,
    *,
    report: Callable[[str], object] = log.info,
    stop: Callable[[], bool] = lambda: False,
) -> StudyState:
    """Make the runs of the request that are not done, one after another, each in a process of its own.

    Done runs are kept, lost, cancelled and failed ones resumed, missing ones trained; one that fails costs only itself
    and what starts from it. stop() is asked a few times a second, as is the cancel file. Raises durable.Busy if another
    process conducts this study, DataError, SpecError.
    """
    entries = request.entries()
    refuse_missing_data(entries)
    place = conduct_of(request.study, store)
    place.path.mkdir(parents=True, exist_ok=True)
    with durable.ProcessLock(place.path / "lock", wait=0.5):
        waiting = place.state()
        asked = place.cancel_requested()
        (place.path / "cancel").unlink(missing_ok=True)
        if asked and waiting and waiting.state == "cancelled" and _recent(waiting):  # before this process came
            return waiting
        pid = os.getpid()
        state = StudyState(request=request, state="running", pid=pid, started=durable.start_time(pid))
        state = place.record(state)

        def stopped() -> bool:
            return stop() or place.cancel_requested()

        failed: list[str] = []
        for number, entry in enumerate(entries, 1):
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
                _train(run, stopped)
                if stopped():
                    report("stopped as asked; the same command goes on from there")
                    (place.path / "cancel").unlink(missing_ok=True)
                    return place.record(state.model_copy(update={"state": "cancelled", "message": "cancelled"}))
            _weigh(run)
            report(f"{label}: {run.id} {run.status()}, {run.state().message}")
            if run.state().state != "done":
                failed.append(label)
        message = f"{len(failed)} of {len(entries)} runs are not done: {'; '.join(failed)}" if failed else "all done"
        end: Literal["incomplete", "done"] = "incomplete" if failed else "done"
        return place.record(state.model_copy(update={"state": end, "message": message, "run": ""}))


def _create(entry: Entry, entries: Sequence[Entry], store: RunStore) -> Run | None:
    """A new run for an entry, or None where what it starts from is not done."""
    if entry.starts is None:
        return store.create(entry.spec)
    before = [e for e in entries if e.variant == PRETRAINING and e.seed == entry.seed]
    run = find(before, store)[0]
    return store.create(entry.after(run.id)) if run and run.state().state == "done" else None


def _train(run: Run, stopped: Callable[[], bool]) -> None:
    """Train or resume a run in a process of its own and wait for its end; with stopped() it ends after its step."""
    process = None
    if not run.alive():
        with run.lock():
            jobs.prepare_resume(run)
        process = jobs.start(run, "train")
    asked = False
    while process.poll() is None if process else run.alive():  # without a process: somebody else is at it
        if stopped() and not asked:
            jobs.cancel(run)
            asked = True
        time.sleep(LOOK)


def _weigh(run: Run) -> None:
    """Write the weight maps of a finished run on collages, whose foreground tile is known; a failure is in its log."""
    if run.spec.data.name == "collage" and run.state().state == "done" and weight_maps.path_of(run) is None:
        jobs.start(run, "weigh").wait()


def _best(runs: Sequence[Run]) -> Run | None:
    """Of runs with one spec, oldest first: the first that is done, else the furthest."""
    states = [(run, run.state()) for run in runs]
    done = [run for run, state in states if state.state == "done"]
    return done[0] if done else max(states, key=lambda pair: pair[1].step, default=(None, None))[0]


def _starting(state: StudyState) -> bool:
    return state.state == "queued" and _recent(state)


def _recent(state: StudyState) -> bool:
    """Whether the process that was launched for this state may still be on its way."""
    return 0 <= time.monotonic() - state.queued < START_GRACE
