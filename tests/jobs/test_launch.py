import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dmlcore.data import DataError
from dmlcore.inspection.neighbours import path_of
from dmlcore.jobs import device_queue, launch
from dmlcore.jobs.launch import Job, JobError, JobState
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import RunStore, scores
from tests.started import until

LAUNCHER = """
import os, signal, sys
from dmlcore.jobs import launch as jobs
from dmlcore.storage.runs import RunStore
from dmlcore.spec import RunSpec
print(jobs.launch(RunSpec.from_json(sys.argv[1]), RunStore(sys.argv[2])), flush=True)
os.killpg(0, signal.SIGKILL)  # with all that its session holds, as a closed terminal or a service manager would
"""
SHORT = RunSpec().with_overrides(["schedule.steps=40", "schedule.validate_every=20", "schedule.checkpoint_every=10"])
ENDLESS = SHORT.with_overrides(["schedule.steps=1000000"])

pytestmark = pytest.mark.usefixtures("forked_tasks")  # excludes the process that the launcher above starts


def test_row_29_a_job_outlives_its_killed_launcher_and_goes_all_the_way(store: RunStore, tmp_path: Path) -> None:
    launcher = subprocess.run(
        [sys.executable, "-c", LAUNCHER, SHORT.to_json(), str(store.root)],
        cwd=tmp_path,  # a directory other than the repository
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    assert launcher.returncode == -signal.SIGKILL, launcher.stderr
    run = store.open(launcher.stdout.strip())
    seen: list[str] = []
    until(lambda: seen.append(run.status()) or seen[-1] not in ("queued", "running"), run.log_tail)
    assert seen[-1] == "done", run.log_tail()
    assert path_of(run.embeddings()).exists()  # the run exists before its id is printed
    assert "lost" not in seen
    assert scores(run.metrics()[0]).keys() == {"inputs", "untrained", "pca_whitened", "whitened", "trained"}
    state = run.state()
    assert (state.step, state.pid > 0, state.device.startswith(("CPU", "NVIDIA"))) == (40, True, True)

    # Map of the learned embeddings, then another evaluation, which must find equal scores.
    until(lambda: not run.is_alive(), run.log_tail)
    launch.project(run)
    until(run.projection, run.log_tail)
    with np.load(run.projection(), allow_pickle=False) as plane, np.load(run.embeddings()) as learned:
        assert plane["points"].shape == (len(learned["embeddings"]), 2)
        assert len(learned["labels"]) == len(learned["indices"]) == len(learned["embeddings"]) == 896
    until(lambda: not run.is_alive(), run.log_tail)
    before = run.metrics()
    launch.evaluate(run)
    until(lambda: "evaluated" in "".join(run.log_tail(3)), run.log_tail)
    assert run.metrics() == before
    assert run.status() == "done"
    until(lambda: not run.is_alive(), run.log_tail)
    with pytest.raises(JobError, match="is finished"):
        launch.resume(run)


def test_cancel_keeps_everything_and_resume_goes_on(store: RunStore) -> None:
    run = store.open(launch.launch(ENDLESS, store))
    with pytest.raises(JobError, match=r"already queued|is running it"):
        launch.resume(run)
    until(lambda: len(run.metrics()[0]) > 5, run.log_tail)
    with pytest.raises(JobError, match="is running it"):
        launch.evaluate(run)
    launch.cancel(run)
    until(lambda: run.status() == "cancelled", run.log_tail)
    until(lambda: not run.is_alive(), run.log_tail)
    rows = run.metrics()[0]
    assert rows[-1]["step"] == run.state().step

    launch.resume(run)
    until(lambda: len(run.metrics()[0]) > len(rows) + 5, run.log_tail)
    assert run.metrics()[0][: len(rows)] == rows
    launch.cancel(run)
    until(lambda: not run.is_alive(), run.log_tail)
    assert run.status() == "cancelled"


def test_cancel_before_the_worker_came_is_final(store: RunStore) -> None:
    run = store.open(launch.launch(SHORT, store))
    launch.cancel(run)
    assert run.status() == "cancelled"
    until(lambda: not run.is_alive(), run.log_tail)
    assert run.metrics()[0] == []


def test_row_35_a_run_that_ended_takes_no_request_to_cancel(store: RunStore) -> None:
    run = store.create(SHORT)
    with run.lock():
        run.update(state="failed")
    launch.cancel(run)
    assert not run.cancel_requested()  # otherwise the request would end the next task on the run
    assert run.status() == "failed"


def test_what_only_the_worker_finds_becomes_failed(store: RunStore) -> None:
    run = store.open(launch.launch(SHORT.with_overrides(["loss.name=nonsense"]), store))
    until(lambda: run.status() == "failed", run.log_tail)
    assert "unknown loss 'nonsense'" in run.state().message


def test_missing_data_start_nothing(store: RunStore, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="CIFAR"):
        launch.launch(SHORT.with_overrides(["data.name=cifar100", f"data.root={json.dumps(str(tmp_path))}"]), store)
    with pytest.raises(DataError, match="nonsense"):
        launch.launch(SHORT.with_overrides(["data.name=nonsense"]), store)
    assert list(store.list()) == []


def test_the_queue_has_a_ceiling(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "MAX_QUEUED", 3)
    for _ in range(3):
        store.create(SHORT)
    with pytest.raises(JobError, match="cancel one or wait"):
        launch.launch(SHORT, store)


def test_projecting_needs_embeddings(store: RunStore) -> None:
    with pytest.raises(JobError, match="evaluate it first"):
        launch.project(store.create(SHORT))


def test_jobs_have_a_ceiling_too_which_those_that_ended_do_not_fill(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    monkeypatch.setattr(launch, "MAX_QUEUED", 2)
    monkeypatch.setattr(launch, "start_process", lambda run, *_: started.append(run.id))
    first, second, third = (store.create(SHORT) for _ in range(3))
    launch.evaluate(first)
    launch.evaluate(second)
    with pytest.raises(JobError, match="2 jobs are already queued or running"):
        launch.evaluate(third)
    Job(first).record(JobState(task="evaluate", state="done"))
    launch.evaluate(third)
    assert started == [first.id, second.id, third.id]


def test_a_map_that_waits_for_its_turn_is_stopped_for_good(store: RunStore) -> None:
    at_work, run = store.create(SHORT), store.create(SHORT)
    (run.path / "embeddings" / "e.npz").touch()
    job = Job(run)
    with at_work.lock(), device_queue.acquire_slot(at_work, wait=True, job=True):
        launch.project(run)
        until(lambda: job.state().message == "waiting for 1 other job", run.log_tail)
        assert (job.status(), job.is_alive(), run.status()) == ("running", True, "queued")
        with pytest.raises(JobError, match="is running it"):
            launch.start_job(run, "weigh")
        job.cancel()
        until(lambda: not run.is_alive(), run.log_tail)
    assert (job.status(), job.cancel_requested()) == ("cancelled", False)
    assert launch.pending_jobs(store) == []


def test_a_job_that_fails_says_why_until_the_next_and_one_that_was_killed_is_lost(store: RunStore) -> None:
    run = store.create(SHORT)
    (run.path / "embeddings" / "e.npz").write_bytes(b"damaged")
    job = Job(run)
    assert job.status() == "never"
    launch.project(run)
    until(lambda: job.status() == "failed", run.log_tail)
    assert "e.npz" in job.state().message
    until(lambda: not run.is_alive(), run.log_tail)
    with run.lock():
        job.record(JobState(task="project", state="running", pid=os.getpid()))
        assert job.status() == "running"
        job.record(JobState(task="project", state="running", pid=os.getpid() + 1))
        assert job.status() == "lost", "another process holds the lock"
    assert [found.run.id for found in launch.pending_jobs(store)] == [run.id]
