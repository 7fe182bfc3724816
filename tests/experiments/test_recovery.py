"""What was at work or waited when the machine went down goes on, each once."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from dmlcore.experiments import recovery
from dmlcore.experiments.studies import StudyRequest, StudyState, conduct_of
from dmlcore.jobs import launch
from dmlcore.jobs.launch import Job, JobError, JobState
from dmlcore.spec import RunSpec
from dmlcore.storage import atomic_files, locks
from dmlcore.storage.runs import Run, RunStore
from tests import warm
from tests.faults import crash

SPEC = RunSpec(device="cpu")


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "runs")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """What would have been started as a process, which holds the lock of its run from then on."""
    seen: list[tuple[str, ...]] = []
    monkeypatch.setattr(launch, "start", lambda run, task, *more: seen.append((run.id, task, *more)))
    monkeypatch.setattr(recovery, "_coming", lambda run: False)
    return seen


def made(store: RunStore, **state: object) -> Run:
    run = store.create(SPEC)
    with run.lock():
        for word in ("running", "done") if state.get("state") == "done" else (state.get("state", "queued"),):
            run.update(**state | {"state": word})
    return run


def long_ago(seconds: float = 3600.0) -> dict[str, object]:
    return {"queued": time.monotonic() - seconds, "boot": locks.boot()}


def test_twice_at_once_after_a_real_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tasks_begin_warm) -> None:
    monkeypatch.setenv("DML_CPU_RUNS", "1")
    assert crash.after_a_crash(tmp_path, queued=2, running=1, python=warm.run).startswith("3 of 3 resumed")


def test_only_what_was_interrupted_goes_on_and_what_was_at_work_first(store: RunStore, started) -> None:
    second, first = made(store, **long_ago(100)), made(store, **long_ago(200))
    at_work = made(store, state="running")
    made(store, state="done")
    made(store, state="cancelled")
    made(store, state="failed")
    alive = made(store, state="running")
    unwanted = made(store, state="running")
    unwanted.request_cancel()
    with alive.lock():
        assert recovery.recover(store) == [at_work.id, first.id, second.id]
    assert started == [(run.id, "train") for run in (at_work, first, second)]
    assert unwanted.state().state == "cancelled"
    assert {run.status() for run in (at_work, first, second)} == {"queued"}


def test_a_crowd_of_recoveries_resumes_each_run_once(store: RunStore, started, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dmlcore.storage.task.START_GRACE", 2.0)  # processes that never come are asked for again
    runs = [made(store, state="running") for _ in range(6)]
    barrier, found = threading.Barrier(4), []

    def one() -> None:
        barrier.wait()
        found.extend(recovery._resume(run, print) for run in runs)

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found.count(True) == 6
    assert sorted(started) == sorted((run.id, "train") for run in runs)


def test_another_recovery_between_the_look_and_the_lock_is_noticed(store: RunStore, started, monkeypatch) -> None:
    run, real, seen = made(store, state="running"), Run.lock, []

    def lock(self: Run, wait: float = 2.0) -> locks.ProcessLock:
        if not seen:
            seen.append("once")
            assert recovery._resume(Run(self.path), print) is True
        return real(self, wait)

    monkeypatch.setattr(Run, "lock", lock)
    assert recovery._resume(run, print) is None
    assert started == [(run.id, "train")]


def test_a_run_queued_before_a_reboot_is_lost_at_once(store: RunStore, started) -> None:
    run = store.create(SPEC)
    assert (run.status(), run.state().on_its_way()) == ("queued", True)
    with run.lock():
        run.update(boot="another boot")  # whose clock stood where ours stands now
    assert run.status() == "lost"
    assert recovery.recover(store) == [run.id]
    assert (run.status(), run.state().boot) == ("queued", locks.boot())


def test_two_who_resume_at_once_start_one_process(store: RunStore, started) -> None:
    run = made(store, state="failed")
    launch.resume(run)
    with pytest.raises(JobError, match="about to start"):
        launch.resume(run)
    assert started == [(run.id, "train")]


def test_a_run_whose_process_is_on_its_way_is_waited_for(store: RunStore, started, monkeypatch) -> None:
    monkeypatch.setattr("dmlcore.storage.task.START_GRACE", 1.0)
    run = store.create(SPEC)
    began = time.monotonic()
    assert recovery.recover(store) == [run.id]
    assert time.monotonic() - began > 0.5


def test_jobs_that_were_cut_off_are_asked_for_again(store: RunStore, started, monkeypatch: pytest.MonkeyPatch) -> None:
    run, other = made(store, state="done"), made(store, state="done")
    launch.evaluate(run)
    with pytest.raises(JobError, match="about to start"):
        launch.evaluate(run)
    path = store.root / launch.ASKED / f"{run.id}.json"
    atomic_files.replace_json(path, {"task": "evaluate", "more": ["--settings", "x"], "queued": 1.0, "boot": "another"})
    (store.root / launch.ASKED / "gone.json").write_text("{}")
    (store.root / launch.ASKED / f"{other.id}.json").write_text("damaged")
    started.clear()
    assert recovery.recover(store) == [run.id]
    assert started == [(run.id, "evaluate", "--settings", "x")]
    Job(run).record(JobState(task="evaluate", state="done"))
    assert recovery.recover(store) == []


def test_an_interrupted_study_goes_on_and_takes_its_run_along(store: RunStore, started, monkeypatch) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr("subprocess.Popen", lambda command, **_: commands.append(command) or _Ended())
    run = made(store, state="running")
    place = conduct_of("tokens", store)
    place.path.mkdir(parents=True)
    request = StudyRequest(study="tokens", seeds=(3,))
    place.record(StudyState(request=request, state="running", run=run.id, boot="another"))
    assert place.status() == "lost"
    assert recovery.recover(store) == ["tokens"]
    assert [command[2:] for command in commands] == [
        ["dmlcore", "study", "tokens", "--seeds", "3", "--runs", str(store.root)]
    ]
    assert (place.status(), run.status(), started) == ("queued", "lost", [])
    assert recovery.recover(store) == []


class _Ended:
    def wait(self) -> int:
        return 0
