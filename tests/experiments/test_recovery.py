"""Interrupted and queued tasks continue after a crash of the machine, each exactly once."""

import shutil
import threading
import time
from pathlib import Path

import pytest
from pydantic import ValidationError

from dmlcore.experiments import recovery
from dmlcore.experiments.protocols import ProtocolRequest
from dmlcore.experiments.studies import StudyRequest, StudyState, conduct_of
from dmlcore.jobs import launch
from dmlcore.jobs.backends import choice
from dmlcore.jobs.launch import Job, JobError, JobState
from dmlcore.spec import RunSpec
from dmlcore.storage import atomic_files, locks
from dmlcore.storage.run_directory import EMBEDDINGS, LOG
from dmlcore.storage.runs import Run, RunError, RunStore
from tests.faults import crash

pytestmark = pytest.mark.processes

SPEC = RunSpec(device="cpu")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Return the recorded starts of processes, each of which holds the lock of its run from then on."""
    seen: list[tuple[str, ...]] = []
    monkeypatch.setattr(launch, "start_process", lambda run, task, *more: seen.append((run.id, task, *more)))
    monkeypatch.setattr(recovery, "_is_starting", lambda run: False)
    return seen


def make_run(store: RunStore, **state: object) -> Run:
    run = store.create(SPEC)
    with run.lock():
        for word in ("running", "done") if state.get("state") == "done" else (state.get("state", "queued"),):
            run.update(**state | {"state": word})
    return run


def long_ago(seconds: float = 3600.0) -> dict[str, object]:
    return {"queued": time.monotonic() - seconds, "boot": locks.current_boot()}


def test_twice_at_once_after_a_real_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked_tasks) -> None:
    monkeypatch.setenv("DML_CPU_RUNS", "1")
    assert crash.after_a_crash(tmp_path, queued=2, running=1).startswith("3 of 3 resumed")


def test_only_what_was_interrupted_goes_on_and_what_was_at_work_first(store: RunStore, started) -> None:
    second, first = make_run(store, **long_ago(100)), make_run(store, **long_ago(200))
    at_work = make_run(store, state="running")
    make_run(store, state="done")
    make_run(store, state="cancelled")
    make_run(store, state="failed")
    alive = make_run(store, state="running")
    unwanted = make_run(store, state="running")
    unwanted.request_cancel()
    with alive.lock():
        assert recovery.recover(store) == [at_work.id, first.id, second.id]
    assert started == [(run.id, "train") for run in (at_work, first, second)]
    assert unwanted.state().state == "cancelled"
    assert {run.status() for run in (at_work, first, second)} == {"queued"}


def test_a_crowd_of_recoveries_resumes_each_run_once(store: RunStore, started, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dmlcore.storage.task.LOCK_TIMEOUT", 2.0)  # processes that never start are retried
    runs = [make_run(store, state="running") for _ in range(6)]
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
    run, real, seen = make_run(store, state="running"), Run.lock, []

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
    assert (run.status(), run.state().is_starting()) == ("queued", True)
    with run.lock():
        run.update(boot="another boot")  # whose clock shows the same value as ours
    assert run.status() == "lost"
    assert recovery.recover(store) == [run.id]
    assert (run.status(), run.state().boot) == ("queued", locks.current_boot())


def test_two_who_resume_at_once_start_one_process(store: RunStore, started) -> None:
    run = make_run(store, state="failed")
    launch.resume(run)
    with pytest.raises(JobError, match="already queued or starting"):
        launch.resume(run)
    assert started == [(run.id, "train")]


def test_a_run_whose_process_is_on_its_way_is_waited_for(store: RunStore, started, monkeypatch) -> None:
    monkeypatch.setattr("dmlcore.storage.task.LOCK_TIMEOUT", 1.0)
    run = store.create(SPEC)
    began = time.monotonic()
    assert recovery.recover(store) == [run.id]
    assert time.monotonic() - began > 0.5


def test_jobs_that_were_cut_off_are_asked_for_again(store: RunStore, started, monkeypatch: pytest.MonkeyPatch) -> None:
    run, other = make_run(store, state="done"), make_run(store, state="done")
    launch.evaluate(run)
    with pytest.raises(JobError, match="already queued or starting"):
        launch.evaluate(run)
    path = store.root / launch.REQUESTS / f"{run.id}.json"
    atomic_files.replace_json(path, {"task": "evaluate", "more": ["--settings", "x"], "queued": 1.0, "boot": "another"})
    (store.root / launch.REQUESTS / "gone.json").write_text("{}")
    (store.root / launch.REQUESTS / f"{other.id}.json").write_text("damaged")
    started.clear()
    assert recovery.recover(store) == [run.id]
    assert started == [(run.id, "evaluate", "--settings", "x")]
    Job(run).record(JobState(task="evaluate", state="done"))
    assert recovery.recover(store) == []


def test_an_interrupted_study_goes_on_and_takes_its_run_along(store: RunStore, started, monkeypatch) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr("subprocess.Popen", lambda command, **_: commands.append(command) or _Ended())
    run = make_run(store, state="running")
    place = conduct_of("tokens", store)
    place.path.mkdir(parents=True)
    request = StudyRequest(study="tokens", seeds=(3,))
    # a backend that the owner does not offer: the study goes on here
    place.record(StudyState(request=request, state="running", run=run.id, boot="another", backend=RAY))
    assert place.status() == "lost"
    assert recovery.recover(store) == ["tokens"]
    assert [command[2:] for command in commands] == [
        ["dmlcore", "study", "tokens", "--seeds", "3", "--runs", str(store.root)]
    ]
    assert (place.status(), run.status(), started) == ("queued", "lost", [])
    assert recovery.recover(store) == []


RAY = "ray:127.0.0.1:9777?cpus=2"


def foreign(store: RunStore) -> tuple[Run, Run]:
    """Return a run and a job that the state files of a foreign store place on a cluster."""
    run, asked_of = make_run(store, state="running", backend=RAY), make_run(store, state="done")
    request = {"task": "evaluate", "backend": RAY, "queued": 1.0, "boot": "another"}
    (store.root / launch.REQUESTS).mkdir(parents=True)
    atomic_files.replace_json(store.root / launch.REQUESTS / f"{asked_of.id}.json", request)
    return run, asked_of


def test_a_state_file_chooses_no_machine_to_connect_to(store: RunStore, started) -> None:
    run, asked_of = foreign(store)
    reports: list[str] = []
    assert recovery.recover(store, reports.append) == [run.id, asked_of.id]
    assert started == [(run.id, "train"), (asked_of.id, "evaluate")]
    assert (run.state().backend, Job(asked_of).state().backend) == ("", "")
    assert all(f"running on this machine instead of the recorded backend {RAY!r}" in line for line in reports)

    resumed = make_run(store, state="failed", backend=RAY)
    launch.resume(resumed)
    assert started[2:] == [(resumed.id, "train")]
    assert f"instead of the recorded backend {RAY!r}" in resumed.log_tail()[-1]


def test_only_a_launch_asks_for_processes(store: RunStore, started) -> None:
    run = store.open(launch.launch(SPEC, store, processes=3))
    with run.lock():
        run.update(state="failed")
    launch.resume(run)
    assert started == [(run.id, "train", "--processes", "3"), (run.id, "train")]


@pytest.mark.parametrize("name", [LOG, EMBEDDINGS])
def test_a_link_in_a_run_directory_is_not_written_through(name: str, store: RunStore, started) -> None:
    run, job_of = make_run(store, state="failed"), make_run(store, state="done")
    for path in (run.path / name, job_of.path / name):
        shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True)
        path.symlink_to(store.root / "of the owner")
    (store.root / "of the owner").mkdir()
    for begin in (lambda: launch.resume(run), lambda: launch.start_job(job_of, "evaluate"), lambda: run.lock()):
        with pytest.raises(RunError, match=f"{name} is a link, and writing would change its target; copy"):
            begin()
    assert started == []
    run.delete()
    assert (store.root / "of the owner").exists()


@pytest.mark.parametrize("named", ["DML_BACKENDS", "the command"])
def test_a_recorded_backend_that_the_owner_names_is_used(named: str, store: RunStore, started, monkeypatch) -> None:
    monkeypatch.setattr(choice, "find_spec", lambda name: name)
    if named == "DML_BACKENDS":
        monkeypatch.setenv(named, f"slurm {RAY}")
    run, asked_of = foreign(store)
    recovery.recover(store, backends=[RAY] if named == "the command" else [])
    assert started == [(run.id, "train", "--backend", RAY), (asked_of.id, "evaluate", "--backend", RAY)]


def test_a_request_for_a_job_holds_no_other_option_than_its_settings(store: RunStore, started) -> None:
    run, _ = foreign(store)
    run.delete()
    (path,) = (store.root / launch.REQUESTS).glob("*.json")
    reports: list[str] = []
    for more in (["--backend", RAY], ["--settings", "{}", "--backend", RAY], ["--settings"], ["--runs", "/elsewhere"]):
        atomic_files.replace_json(path, {"task": "evaluate", "more": more, "queued": 1.0, "boot": "another"})
        assert recovery.recover(store, reports.append) == started == []
    assert reports == [f"{path.stem}: {path} is not a job request and is ignored"] * 4


@pytest.mark.parametrize("word", ["--backend=ray:127.0.0.1:9777", "-x"])
def test_what_a_study_or_protocol_asks_for_is_no_option(word: str) -> None:
    with pytest.raises(ValidationError):
        StudyRequest(study=word)
    with pytest.raises(ValidationError):
        StudyRequest(study="tokens", overrides=("data.root=/data", word))
    with pytest.raises(ValidationError):
        ProtocolRequest(protocol=word)
    with pytest.raises(ValidationError):
        ProtocolRequest(protocol="karaman-2021-toy", overrides=(word,))


class _Ended:
    def wait(self) -> int:
        return 0
