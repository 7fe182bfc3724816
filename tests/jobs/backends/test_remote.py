"""Remote work on nodes that are processes of this machine: lost nodes, cancellation, and damaged lines."""

import hashlib
import os
import socket
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from dmlcore.cli import attended, on_node, together, workers
from dmlcore.inspection.maps.settings import Settings
from dmlcore.jobs import launch
from dmlcore.jobs.backends import backend as backends
from dmlcore.jobs.backends import choice, ray_engine
from dmlcore.jobs.backends.remote import RemoteBackend, RemoteWork
from dmlcore.jobs.backends.side_by_side import ConcurrentWork, Pause
from dmlcore.jobs.backends.submission import NODES, Submission
from dmlcore.spec import RunSpec
from dmlcore.storage import locks
from dmlcore.storage.run_directory import LAST, LOCK, METRICS
from dmlcore.storage.runs import Run, RunStore
from dmlcore.storage.task import JobError
from tests.jobs.backends import nodes
from tests.jobs.backends.nodes import LocalEngine
from tests.once import once
from tests.started import until

SPEC = RunSpec().with_overrides(
    [
        "model.hidden=[8]",
        "model.embedding_dim=4",
        "batch.classes=4",
        "batch.samples=2",
        "schedule.steps=40",
        "schedule.validate_every=20",
        "schedule.checkpoint_every=10",
    ]
)


RAY = choice.parse("ray")


def finish(work: RemoteWork) -> RemoteWork:
    until(work.has_ended, lambda: f"{work.task.state()} {work.task.log_tail()}", 300)
    return work


def create(store: Path, processes: int = 1) -> Run:
    run = RunStore(store).create(SPEC)
    with run.lock():
        run.update(processes=processes)
    return run


def digests(run: Run) -> dict[str, str]:
    """Return everything that a run has learned and measured, by file."""
    paths = (run.path / LAST, run.path / METRICS, run.embeddings())
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def made_here(folder: Path, processes: int) -> None:
    workers.train_now(RunStore(folder).create(SPEC), together.start_company(processes))


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return a run trained here without interruption."""
    (run,) = RunStore(once(tmp_path_factory, "alone", lambda folder: made_here(folder, 1))).list()
    return digests(run)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return a run trained here by two processes without interruption: `dml train --processes 2`."""
    (run,) = RunStore(once(tmp_path_factory, "pair", lambda folder: made_here(folder, 2))).list()
    return digests(run)


def test_a_lost_node_costs_nothing_and_the_run_equals_the_one_made_here(tmp_path, twin) -> None:
    run, engine = create(tmp_path), LocalEngine(nodes.kill_at_25)
    work = finish(RemoteBackend(RAY, engine).begin(run, "train"))
    state = run.state()
    assert (state.state, state.step, state.backend, state.host) == ("done", 40, "ray", os.uname().nodename)
    assert (work.message, len(engine.submissions), run.is_alive()) == (state.message, 2, False)
    assert digests(run) == twin
    log = "\n".join(run.log_tail(100))
    assert "the node is gone; resuming from the last checkpoint elsewhere" in log
    assert "from step 20 to 40" in log
    assert not list((tmp_path / NODES).iterdir())


def test_a_lost_process_of_two_has_both_begin_again_and_the_run_equals_the_one_made_here(tmp_path, pair) -> None:
    run, engine = create(tmp_path, processes=2), LocalEngine(nodes.kill_second_at_25)
    finish(RemoteBackend(RAY, engine).begin(run, "train"))
    assert (run.state().state, run.state().processes, len(engine.submissions)) == ("done", 2, 2), run.log_tail(30)
    assert digests(run) == pair
    assert "from step 20 to 40" in "\n".join(run.log_tail(100))


def test_what_fails_on_one_of_two_nodes_alone_is_told_and_not_tried_again(tmp_path) -> None:
    run, engine = create(tmp_path, processes=2), LocalEngine(nodes.lack_data_on_second)
    finish(RemoteBackend(RAY, engine).begin(run, "train"))
    assert run.state().state == "failed"
    assert run.state().message == f"digits: no such data here (on {os.uname().nodename})"
    assert len(engine.submissions) == 1


def test_a_node_that_is_lost_again_and_again_is_no_accident(tmp_path) -> None:
    run = create(tmp_path)
    work = finish(RemoteBackend(RAY, LocalEngine(*[nodes.kill] * 4)).begin(run, "train"))
    assert run.state().state == "failed"
    assert work.message == run.state().message == "Here: the node is gone; 4 attempts in a row failed"
    assert not run.is_alive()


def test_a_preempted_job_continues_when_it_is_requeued(tmp_path, twin) -> None:
    """While it waits, the monitoring process holds the lock again, so the run is not taken for lost."""
    run, engine = create(tmp_path), LocalEngine(nodes.kill_at_25, requeues=True)
    work = RemoteBackend(RAY, engine).begin(run, "train")
    until(lambda: work.has_ended() or (not engine.requeues and locks.is_held_here(run.path / LOCK)))
    assert not work.has_ended()
    assert run.status() == "queued"
    assert 0 < run.state().step <= 24  # the state is written every few steps
    engine.start(engine.submissions[0], work._work)
    finish(work)
    assert (run.state().state, len(engine.submissions)) == ("done", 1)
    assert digests(run) == twin


def test_a_lost_node_that_keeps_the_lock_is_not_replaced(tmp_path, monkeypatch) -> None:
    """A node that only the scheduler has lost may still write."""
    run, engine = create(tmp_path), LocalEngine(nodes.stop_at_7)
    work = RemoteBackend(RAY, engine).begin(run, "train")
    until(lambda: work.has_ended() or (engine.submissions[0].folder / "stopped").exists())
    assert not work.has_ended()
    monkeypatch.setattr(engine, "ended", lambda work: True)
    monkeypatch.setattr(engine, "withdraw", lambda work: None)
    monkeypatch.setattr("dmlcore.jobs.backends.remote.LOCK_PATIENCE", 0.5)
    monkeypatch.setattr(engine, "release", lambda work: None)
    finish(work)
    assert work.message == f"Here: the node was lost, but still holds the lock of {run.id}"
    assert (len(engine.submissions), run.status()) == (1, "running")
    work._work[0][0].kill()
    work._work[0][0].join()
    assert run.status() == "lost"


def test_an_error_of_the_run_is_no_lost_node(tmp_path) -> None:
    run = RunStore(tmp_path).create(SPEC.with_overrides(["device=cuda"]))
    work = finish(RemoteBackend(RAY, LocalEngine()).begin(run, "train"))
    assert "no usable CUDA device" in work.message
    assert run.state().state == "failed"


def test_a_store_or_a_lock_that_nodes_do_not_see_is_named(tmp_path) -> None:
    asked = {"task": "train", "settings": "", "token": "abc", "host": "head"}
    with pytest.raises(JobError, match="does not see the run store /nowhere of head: keep the runs in a folder that"):
        on_node.carry_out(Submission(store="/nowhere", run="run", **asked))
    run = create(tmp_path)
    wanted = Submission(store=str(tmp_path), run=run.id, **asked)
    wanted.folder.mkdir(parents=True)
    wanted.lock_file.write_text("of another submission")
    with pytest.raises(JobError, match="does not see the run store"):
        on_node.carry_out(wanted)
    wanted.lock_file.write_text("abc")
    with pytest.raises(JobError, match=f"does not see that head holds the lock of {run.id}.*NFS without nolock"):
        on_node.carry_out(wanted)
    assert run.state().state == "queued"


def test_what_a_node_refuses_ends_the_run_with_the_remedy(tmp_path) -> None:
    run = create(tmp_path)
    work = finish(RemoteBackend(RAY, LocalEngine(nodes.see_another_store)).begin(run, "train"))
    assert (run.state().state, run.is_alive()) == ("failed", False)
    assert "does not see the run store" in work.message


def test_nobody_else_takes_a_run_that_waits_for_a_node(tmp_path) -> None:
    run = create(tmp_path)
    work = RemoteBackend(RAY, LocalEngine(begins=False)).begin(run, "train")
    assert not work.has_ended()
    assert (run.status(), run.state().message) == ("queued", "waiting for room")
    with pytest.raises(JobError, match="a process is running it"):
        launch.resume(run)
    run.cancel()
    finish(work)
    assert (run.state().state, run.state().message) == ("cancelled", "cancelled before it started")
    assert not run.is_alive()


def test_a_cancel_reaches_a_run_on_a_node(tmp_path) -> None:
    run = create(tmp_path)
    finish(RemoteBackend(RAY, LocalEngine(nodes.cancel_at_7)).begin(run, "train"))
    assert (run.state().state, run.state().step, run.is_alive()) == ("cancelled", 7, False)


def test_jobs_on_a_run_are_executed_on_nodes(tmp_path, twin, monkeypatch) -> None:
    run = create(tmp_path)
    backend = RemoteBackend(RAY, LocalEngine())
    finish(backend.begin(run, "train"))
    rows = run.metrics()
    monkeypatch.setattr(backends, "create_backend", lambda text: backend)
    assert "evaluated: test MAP@R" in attended.run_job_on_backend("ray", run, "evaluate")
    assert run.metrics() == rows
    message = attended.run_job_on_backend("ray", run, "project", Settings(method="pca").to_json())
    assert run.projection().name in message
    assert launch.Job(run).state() is None
    assert digests(run) == twin
    with pytest.raises(JobError):
        attended.run_job_on_backend("ray", run, "project", "{")
    assert launch.Job(run).status() == "failed"
    assert run.state().state == "done"


def test_a_job_that_waits_for_a_node_is_alive_and_can_be_cancelled(tmp_path) -> None:
    run = create(tmp_path)
    work = RemoteBackend(RAY, LocalEngine(begins=False)).begin(run, "evaluate")
    job = launch.Job(run)
    assert not work.has_ended()
    assert (job.is_alive(), job.status(), job.state().message) == (True, "queued", "waiting for room")
    job.cancel()
    finish(work)
    assert (job.status(), job.is_alive()) == ("cancelled", False)


@pytest.mark.parametrize("task", ["train", "evaluate"])
def test_a_task_that_cannot_be_submitted_has_failed(task, tmp_path) -> None:
    run = create(tmp_path)
    chosen = choice.parse("ray:127.0.0.1:1")
    with pytest.raises(JobError, match=r"cannot connect to a cluster .*; start one: .*ray start --head"):
        RemoteBackend(chosen, ray_engine.RayEngine(chosen)).begin(run, task)
    failed = run if task == "train" else launch.Job(run)
    assert (failed.status(), run.is_alive()) == ("failed", False)
    assert "cannot connect to a cluster at 127.0.0.1:1" in failed.state().message


def test_a_task_has_its_own_number_of_threads(tmp_path) -> None:
    run = create(tmp_path)
    finish(RemoteBackend(choice.parse("ray?cpus=2"), LocalEngine(nodes.report_threads)).begin(run, "train"))
    assert run.state().message == "2 threads"


def test_submissions_of_deleted_runs_are_removed(tmp_path) -> None:
    (tmp_path / NODES / "deleted").mkdir(parents=True)
    RemoteBackend(RAY, LocalEngine(begins=False)).begin(run := create(tmp_path), "train")
    assert [path.name for path in (tmp_path / NODES).iterdir()] == [run.id]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dask", "kind: input should be 'local', 'ray' or 'slurm'"),
        ("ray?cpus=0", "cpus: input should be greater than or equal to 1"),
        ("ray?colour=red", "colour: extra inputs are not permitted"),
        ("ray?cpus", "expected local, ray"),
        ("local?cpus=2", "local takes no options"),
        ("ray:ray://head:10001", "let this machine join the cluster"),
        ("slurm?folder=/shared", "folder was removed; nodes work in the run store"),
        ("ray?nodes=2", "nodes is for SLURM"),
    ],
)
def test_a_backend_that_cannot_be_is_refused_with_what_to_write(text, message) -> None:
    with pytest.raises(JobError, match=message):
        choice.parse(text)


def test_a_backend_is_one_line_of_text() -> None:
    long = "ray:head:6379?cpus=4&gpus=1&gigabytes=2.5"
    for text in ("", "ray", "ray:127.0.0.1:6379", long, "slurm:gpu?minutes=60"):
        assert choice.parse(text).text == text
    assert choice.parse("local").text == ""
    assert choice.parse("ray:head:6379?cpus=4").title == "Ray (head:6379), cpus 4"


def test_pages_offer_what_the_owner_names_and_nothing_else(monkeypatch) -> None:
    monkeypatch.setenv("DML_BACKENDS", "ray:127.0.0.1:6379 local slurm:gpu?gpus=1")
    assert [each.title for each in choice.offered_backends()] == [
        "This machine",
        "Ray (127.0.0.1:6379)",
        "SLURM (gpu), gpus 1",
    ]


def test_without_its_package_a_backend_says_what_to_install(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(choice, "find_spec", lambda name: None)
    store = RunStore(tmp_path)
    with pytest.raises(JobError, match=r"ray is not installed here; pip install 'dml-lab\[ray\]'"):
        launch.launch(SPEC, store, backend="ray")
    assert not store.list()


def test_courses_go_on_side_by_side_and_none_begins_after_a_stop() -> None:
    words, over, stopped = [], set(), []

    def course(name):
        words.append(f"{name} begins")
        yield Pause(lambda: name in over)
        words.append(f"{name} ends")

    side_by_side = ConcurrentWork(2, lambda: bool(stopped))
    courses = (course(name) for name in "abcd")
    assert side_by_side.advance(courses)
    assert words == ["a begins", "b begins"]
    over.add("b")
    assert side_by_side.advance(courses)
    assert words[2:] == ["b ends", "c begins"]
    stopped.append(True)
    while side_by_side.advance(courses):
        pass
    assert words[4:] == ["a ends", "c ends"]


def test_what_answers_and_is_no_cluster_is_given_up(tmp_path, monkeypatch) -> None:
    for name, value in (("HOME", str(tmp_path)), ("RAY_AUTH_MODE", ""), (ray_engine.LOOPBACK, "0")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("RAY_AUTH_MODE")
    over = threading.Event()
    ray = SimpleNamespace(is_initialized=lambda: False, init=lambda **_: over.wait())  # as Ray does forever
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setattr(ray_engine, "CONNECT_TIMEOUT", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        where = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(JobError, match=f"no cluster at {where} responded"):
            ray_engine.connect(where)
        over.set()
        monkeypatch.setattr(ray_engine, "CONNECT_TIMEOUT", 60)
        assert ray_engine.connect(where) is ray
        assert "RAY_AUTH_MODE" not in os.environ
        (tmp_path / ".ray").mkdir()
        (tmp_path / ".ray" / "auth_token").write_text("of the owner")
        assert ray_engine.connect(where) is ray
        assert os.environ["RAY_AUTH_MODE"] == "token"  # Ray lets every account write into the folder that names it.


def test_the_cluster_of_this_machine_is_one_of_the_same_account(tmp_path, monkeypatch) -> None:
    """Ray lets everybody write into the folder that names it."""
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    (tmp_path / "ray").mkdir()
    file = tmp_path / "ray" / "ray_current_cluster"
    with pytest.raises(JobError, match="you have no cluster running on this machine"):
        ray_engine._local_cluster()
    (tmp_path / "elsewhere").write_text("10.0.0.1:6379")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(JobError, match="you have no cluster running on this machine"):
        ray_engine._local_cluster()
    file.unlink()
    file.write_text("127.0.0.1:6379\n")
    assert ray_engine._local_cluster() == "127.0.0.1:6379"
    own = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: own + 1)
    with pytest.raises(JobError, match=rf"belongs to another account \(user id {own}\).*give its address"):
        ray_engine._local_cluster()
