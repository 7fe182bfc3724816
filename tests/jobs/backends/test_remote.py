"""Remote work without a cluster: files sent and fetched, lost nodes, cancellation, and damaged lines."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from dmlcore.cli import on_node, together, workers
from dmlcore.inspection.maps.settings import Settings
from dmlcore.jobs import launch
from dmlcore.jobs.backends import address, choice, order, ray_engine
from dmlcore.jobs.backends.mirror import Mirror, copy_run
from dmlcore.jobs.backends.remote import AWAY, RemoteBackend, RemoteWork
from dmlcore.jobs.backends.side_by_side import ConcurrentWork, Pause
from dmlcore.processes import local
from dmlcore.spec import RunSpec
from dmlcore.storage import locks
from dmlcore.storage.run_directory import LAST, LOCK, METRICS
from dmlcore.storage.run_directory import SPEC as SPEC_FILE
from dmlcore.storage.runs import Run, RunStore
from dmlcore.storage.task import JobError
from dmlcore.training import loop
from tests import warm
from tests.once import once

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


class HereEngine:
    """Engine whose only node is this process; `before` is called with each order before it is executed."""

    title = "Here"

    def __init__(self, before: Callable[[str], object] = lambda folder: None, begins: bool = True) -> None:
        self.before, self.begins = before, begins
        self.folders: list[str] = []
        self.withdrawn: list[str] = []

    def submit(self, folder, spec, processes):
        self.folders.append(folder)
        return folder

    def ended(self, folder):
        if self.begins:
            try:
                self.before(folder)
                on_node.carry_out(folder)
            except SystemExit:  # takes the place of a killed process
                self.why = ("the node is gone", True)
            except OSError as error:
                self.why = (str(error), False)
        return self.begins

    def reason(self, folder):
        return self.why

    def withdraw(self, folder):
        self.withdrawn.append(folder)

    def release(self, folder):
        """Do nothing, as no resources are held."""

    def waits_for(self, spec, processes):
        return "waiting for room"


FOLLOW = """
import sys
from dmlcore.cli import on_node
from dmlcore.jobs.backends.order import ProcessPlace
{first}
on_node.carry_out(sys.argv[1], ProcessPlace(rank=1))
"""
LACKS = """
from dmlcore.data import DataError
from dmlcore.training import starts
def load_data(spec):
    raise DataError("digits: no such data here")
starts.load_data = load_data
"""


class PairEngine(HereEngine):
    """Engine with a second process per run; `firsts` are called at its start, one per attempt."""

    def __init__(self, *firsts: str) -> None:
        super().__init__(self.begin_second)
        self.firsts, self.seconds = list(firsts), []

    def begin_second(self, folder):
        code = FOLLOW.format(first=self.firsts.pop(0) if self.firsts else "")
        self.seconds.append(warm.popen([sys.executable, "-c", code, folder], env=os.environ))

    def release(self, folder):
        assert self.seconds.pop().wait(60) <= 0


def finish(work: RemoteWork) -> RemoteWork:
    for _ in range(20):
        if work.has_ended():
            return work
    raise AssertionError(work.progress)


def digests(run: Run) -> dict[str, str]:
    paths = (run.path / LAST, run.path / METRICS, run.embeddings())
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def made_here(folder: Path, processes: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "subprocess", warm.as_subprocess())
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


@pytest.mark.parametrize("folder", ["", "shared", "file://"])
def test_a_lost_node_costs_nothing_and_the_run_equals_the_one_made_here(folder, tmp_path, monkeypatch, twin) -> None:
    store = RunStore(tmp_path / "runs")
    folder = {"shared": str(tmp_path / "shared"), "file://": f"file://{tmp_path}/bucket"}.get(folder, "")
    step, steps = loop.step, []

    def dies_once(state, number, *more):
        steps.append(number)
        if steps == list(range(1, 26)):
            raise SystemExit
        return step(state, number, *more)

    monkeypatch.setattr(loop, "step", dies_once)
    engine = HereEngine()
    run = store.create(SPEC)
    work = finish(RemoteBackend(choice.parse(f"ray?folder={folder}" if folder else "ray"), engine).begin(run, "train"))
    assert work.result == order.NodeOutcome(state="done", message=run.state().message)
    assert (run.state().state, run.state().step, len(engine.folders)) == ("done", 40, 2)
    assert steps == [*range(1, 26), *range(21, 41)]  # from the last checkpoint
    assert digests(run) == twin
    assert not run.is_alive()
    assert f" on {os.uname().nodename}" in run.state().device
    log = "\n".join(run.log_tail(100))
    assert "the node is gone; resuming from the last checkpoint elsewhere" in log
    left = [path for place in (store.root / AWAY, tmp_path / "shared", tmp_path / "bucket") for path in place.glob("*")]
    assert not left


def test_a_lost_process_of_two_has_both_begin_again_and_the_run_equals_the_one_made_here(
    tmp_path, monkeypatch, pair
) -> None:
    run = RunStore(tmp_path / "runs").create(SPEC)
    with run.lock():
        run.update(processes=2)
    step, steps = loop.step, []

    def kills_once(state, number, *more):
        steps.append(number)
        if steps == list(range(1, 26)):
            engine.seconds[0].kill()
        return step(state, number, *more)

    monkeypatch.setattr(loop, "step", kills_once)
    engine = PairEngine()
    # folder that the second process reads and the first one writes
    chosen = choice.parse(f"ray?folder=file://{tmp_path}/bucket")
    work = finish(RemoteBackend(chosen, engine).begin(run, "train"))
    assert work.result == order.NodeOutcome(state="done", message=run.state().message)
    assert steps == [*range(1, 26), *range(21, 41)]  # both from the last checkpoint
    assert (run.state().step, run.state().processes, len(engine.folders), len(engine.withdrawn)) == (40, 2, 2, 1)
    assert run.state().device.startswith("2 processes, each ")
    assert digests(run) == pair
    assert "another process of the run has stopped" in "\n".join(run.log_tail(100))
    assert "RANK" not in os.environ


def test_what_fails_on_one_of_two_nodes_alone_is_told_and_not_tried_again(tmp_path) -> None:
    run = RunStore(tmp_path).create(SPEC)
    with run.lock():
        run.update(processes=2)
    engine = PairEngine(LACKS)
    work = finish(RemoteBackend(choice.parse("ray"), engine).begin(run, "train"))
    assert work.result.state == "failed"
    assert run.state().message == f"digits: no such data here (on {os.uname().nodename})"
    assert len(engine.folders) == 1


def test_a_node_that_is_lost_again_and_again_is_no_accident(tmp_path) -> None:
    def gone(folder):
        raise SystemExit

    run = RunStore(tmp_path).create(SPEC)
    work = finish(RemoteBackend(choice.parse("ray"), HereEngine(gone)).begin(run, "train"))
    assert (work.result.state, run.state().state) == ("failed", "failed")
    assert run.state().message == "Here: the node is gone; 4 attempts in a row failed"
    assert not run.is_alive()


def test_an_error_of_the_run_is_no_lost_node(tmp_path) -> None:
    run = RunStore(tmp_path).create(SPEC.with_overrides(["device=cuda"]))
    work = finish(RemoteBackend(choice.parse("ray"), HereEngine()).begin(run, "train"))
    assert "no usable CUDA device" in work.result.message
    assert run.state().state == "failed"


def test_a_folder_that_nodes_do_not_see_is_named(tmp_path) -> None:
    run = RunStore(tmp_path).create(SPEC)
    with pytest.raises(OSError, match="cannot access /nowhere: mount it there, or set folder="):
        on_node.carry_out(f"/nowhere/{run.id}.1234")
    on_node.carry_out(str(tmp_path / f"{run.id}.1234"))  # withdrawn: its folder still exists


@pytest.mark.parametrize("begins", [False, True])
def test_a_cancel_reaches_it_wherever_it_is(begins, tmp_path, monkeypatch) -> None:
    run = RunStore(tmp_path).create(SPEC)
    step = loop.step

    def cancels(state, number, *more):
        if number == 7:
            run.cancel()  # as the page does; no signal is sent, as this process is not the worker
            assert work._asked_to_end()
            work._pass_on_cancel()
        return step(state, number, *more)

    monkeypatch.setattr(loop, "step", cancels)
    engine = HereEngine(begins=begins)
    work = RemoteBackend(choice.parse("ray"), engine).begin(run, "train")
    if not begins:
        assert not work.has_ended()
        assert run.state().message == "waiting for room"
        run.cancel()
    finish(work)
    assert run.state().state == "cancelled"
    assert (run.state().step, bool(engine.withdrawn)) == ((7, False) if begins else (0, True))
    assert not locks.holder(run.path / LOCK)


def test_what_somebody_else_puts_at_the_address_ends_the_run_and_stays_there(tmp_path, monkeypatch) -> None:
    run = RunStore(tmp_path / "runs").create(SPEC)
    chosen = choice.parse(f"ray?folder=file://{tmp_path}/bucket")
    work = RemoteBackend(chosen, engine := HereEngine(begins=False)).begin(run, "train")
    (there,) = (tmp_path / "bucket").iterdir()
    for number in range(20):
        (there / f"{number}.ckpt").write_bytes(b"evil")
    monkeypatch.setattr(address, "MAX_FILES", 10)
    finish(work)
    assert run.state().state == "failed"
    assert "a run may have at most 10 files" in run.state().message
    assert (len(engine.withdrawn), there.exists(), run.is_alive()) == (1, False, False)
    assert not list(run.path.glob("*.ckpt"))


def test_a_spec_comes_back_from_nowhere(tmp_path) -> None:
    """The spec never changes: it is neither replaced nor removed."""
    run, there = tmp_path / "run", tmp_path / "there"
    for folder in (run, there):
        folder.mkdir()
    (run / SPEC_FILE).write_text("own")
    copy_run(run, there)
    mirror = Mirror(there, run)
    (there / SPEC_FILE).unlink()
    mirror.copy_new_files()
    (there / SPEC_FILE).write_text("another")
    mirror.copy_new_files()
    assert (run / SPEC_FILE).read_text() == "own"


def test_of_a_spec_only_a_run_of_the_store_is_sent_along(tmp_path) -> None:
    """`model.start` of a spec from another user names a folder above the store."""
    store = RunStore(tmp_path / "runs")
    run = store.create(SPEC.with_overrides(["model.start=.."]))
    (tmp_path / "state.json").write_text("{}")
    (tmp_path / "secret").write_text("of the owner")
    RemoteBackend(choice.parse("ray"), HereEngine(begins=False)).begin(run, "train")
    assert not list(store.root.rglob("secret"))


def test_jobs_on_a_run_come_back_as_files_of_it(tmp_path, twin) -> None:
    run = RunStore(tmp_path).create(SPEC)
    backend = RemoteBackend(choice.parse("ray"), HereEngine())
    finish(backend.begin(run, "train"))
    rows = run.metrics()
    work = finish(backend.begin(run, "evaluate"))
    assert "evaluated: test MAP@R" in work.result.message
    assert run.metrics() == rows
    work = finish(backend.begin(run, "project", Settings(method="pca").to_json()))
    assert run.projection().name in work.result.message
    assert digests(run) == twin
    assert "failed" in finish(backend.begin(run, "project", "{")).result.state
    assert run.state().state == "done"


def test_a_task_has_its_own_number_of_threads(tmp_path, monkeypatch) -> None:
    """The order's number of threads replaces that of the previous task, which would change the rounding."""
    seen = []

    def trains(run, **_):
        seen.append(torch.get_num_threads())
        return run.update(state="failed", message="no further")

    monkeypatch.setattr(loop, "train", trains)
    run = RunStore(tmp_path).create(SPEC)
    finish(RemoteBackend(choice.parse("ray?cpus=2"), HereEngine()).begin(run, "train"))
    assert seen == [2]


def test_rows_that_a_resume_has_cut_are_replaced_and_checkpoints_never_come_before_theirs(tmp_path) -> None:
    run, there = tmp_path / "run", tmp_path / "there"
    run.mkdir()
    (run / METRICS).write_bytes(b"one\ntwo\nthree\n")
    (run / LAST).write_bytes(b"old")
    there.mkdir()
    copy_run(run, there)
    mirror = Mirror(there, run)
    (there / METRICS).write_bytes(b"one\ntwo\nother\nfour\n")
    fresh = there / "fresh"
    fresh.write_bytes(b"new")
    fresh.rename(there / LAST)
    seen: list[bytes] = []
    replace = os.replace

    def watched(source, target):
        if Path(target) == run / LAST:
            seen.append((run / METRICS).read_bytes())
        replace(source, target)

    os.replace = watched
    try:
        mirror.copy_new_files()
    finally:
        os.replace = replace
    assert seen == [b"one\ntwo\nother\nfour\n"]
    assert (run / LAST).read_bytes() == b"new"
    with open(there / METRICS, "ab") as file:
        file.write(b"five\n")
    mirror.copy_new_files()
    assert (run / METRICS).read_bytes() == b"one\ntwo\nother\nfour\nfive\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dask", "kind: input should be 'local', 'ray' or 'slurm'"),
        ("ray?cpus=0", "cpus: input should be greater than or equal to 1"),
        ("ray?colour=red", "colour: extra inputs are not permitted"),
        ("ray?cpus", "expected local, ray"),
        ("local?cpus=2", "local takes no options"),
        ("ray:ray://head:10001", "let this machine join the cluster"),
        ("slurm?folder=s3://bucket", "folder must be a path"),
        ("ray?nodes=2", "nodes is for SLURM"),
    ],
)
def test_a_backend_that_cannot_be_is_refused_with_what_to_write(text, message) -> None:
    with pytest.raises(JobError, match=message):
        choice.parse(text)


def test_a_backend_is_one_line_of_text() -> None:
    long = "ray:head:6379?cpus=4&gpus=1&folder=s3://bucket/lab"
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


def test_nothing_of_an_order_is_pickled(tmp_path) -> None:
    order.write(tmp_path, order.Order(run="x", task="train"))
    assert json.loads((tmp_path / "order.json").read_text())["task"] == "train"
    (tmp_path / "outcome.json").write_text('{"state": "glorious"}')
    assert order.read(tmp_path, order.NodeOutcome) is None


def test_where_no_cluster_answers_it_says_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"cannot connect to a cluster at 127.0.0.1:1 .*; start one: .*ray start --head"):
        ray_engine.connect("127.0.0.1:1")


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
