"""Crash of a machine with running and queued runs, followed by two concurrent recoveries: each run resumes once."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dmlcore.jobs import device_queue, launch
from dmlcore.spec import RunSpec
from dmlcore.storage import leftovers, locks
from dmlcore.storage.runs import Run, RunStore
from tests.started import run_python, until

TINY = RunSpec(device="cpu").with_overrides(
    ["schedule.steps=20", "schedule.validate_every=20", "schedule.checkpoint_every=5"]
)
ENDLESS = TINY.with_overrides(["schedule.steps=1000000"])
STARTED = "from step"  # logged once by each process that trains


def starts(run: Run) -> int:
    """Return how many processes have trained a run."""
    return sum(STARTED in line for line in run.log_tail(1000))


def crash(store: RunStore, queued: int, running: int) -> list[Run]:
    """Start running and waiting runs and kill all their processes; return the runs in order of the queue."""
    at_work = [store.open(launch.launch(ENDLESS, store)) for _ in range(running)]
    until(lambda: all(run.state().step > 5 for run in at_work))
    waiting = [store.open(launch.launch(TINY.with_overrides([f"seed={seed}"]), store)) for seed in range(queued)]
    until(lambda: len(device_queue.waiting_runs(store)) == queued)
    pids = [locks.holder(run.path / "lock") for run in [*at_work, *waiting]]
    assert all(pids)
    assert len(set(pids)) == queued + running
    for number in (signal.SIGSTOP, signal.SIGKILL):  # stopped first, so that no process notices the end of another one
        for pid in pids:
            os.kill(pid, number)
    until(lambda: not any(run.is_alive() for run in [*at_work, *waiting]))
    for run in [*at_work, *waiting]:  # as after a reboot, with a restarted clock
        with run.lock():
            run.update(boot="the boot before")
    return [*at_work, *waiting]


def recover(store: RunStore, at_once: int) -> list[str]:
    """Run several recoveries concurrently; return all lines that they print."""
    with ThreadPoolExecutor(at_once) as threads:
        begun = [
            threads.submit(run_python, "-m", "dmlcore", "recover", "--runs", str(store.root)) for _ in range(at_once)
        ]
        return [line for one in begun for line in one.result().stdout.splitlines()]


def after_a_crash(root: Path, queued: int, running: int) -> str:
    """Crash and recover runs and check each; raises AssertionError, or returns the figures as text."""
    store = RunStore(root)
    runs = crash(store, queued, running)
    reached = {run.id: run.state().step for run in runs}
    began = time.monotonic()
    said = recover(store, 2)
    seconds = time.monotonic() - began
    resumed = [run for run in runs for line in said if line.startswith(f"{run.id}: resumes")]
    assert resumed == sorted(resumed, key=runs.index), "the order of the queue was lost"
    assert [run.id for run in resumed] == [run.id for run in runs], "not every run was resumed exactly once"
    for run in runs[:running]:
        until(lambda run=run: starts(run) == 2 and run.state().step > reached[run.id])
        launch.cancel(run)
    until(lambda: all(run.state().state == "done" for run in runs[running:]), 60.0 * len(runs))
    until(lambda: not any(run.is_alive() for run in runs))
    assert [starts(run) for run in runs] == [2] * running + [1] * queued, "a run was trained by two processes"
    for run in runs:
        steps = [row["step"] for row in run.metrics()[0] if row["kind"] == "step"]
        assert steps == list(range(1, run.state().step + 1)), "a step is missing or duplicated"
    assert recover(store, 1) == ["no interrupted work found"]
    return f"{len(resumed)} of {len(runs)} resumed by two recoveries at once in {seconds:.1f} s, none twice"


def remains(store: RunStore) -> list[str]:
    """Return half-made folders and files that no sweep removes, whatever their age."""
    leftovers.FOLDER_AGE = leftovers.FILE_AGE = 0.0
    leftovers.sweep(store.root)
    names = (path.relative_to(store.root) for path in store.root.rglob("*"))
    return [
        str(name) for name in names if name.name.startswith((".new-", ".deleted-")) or name.suffix in (".tmp", ".new")
    ]
