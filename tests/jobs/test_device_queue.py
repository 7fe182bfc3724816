import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from dmlcore.jobs import device_queue
from dmlcore.spec import RunSpec
from dmlcore.storage import locks
from dmlcore.storage.home import HOME
from dmlcore.storage.runs import Run, RunStore
from tests.started import until

SPEC = RunSpec(device="cpu")
# Locks a run, waits for a slot, prints a line, and works until its standard input is closed.
WORKER = """
import sys
from dmlcore.jobs import device_queue
from dmlcore.storage.runs import RunStore
run = RunStore(sys.argv[1]).open(sys.argv[2])
with run.lock(), device_queue.acquire_slot(run, wait=True, given_up=run.cancel_requested) as begins:
    print(begins, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunStore:
    monkeypatch.setenv("DML_CPU_RUNS", "1")
    return RunStore(tmp_path)


@pytest.fixture
def worker(store: RunStore):
    with ExitStack() as ends:

        def start(run: Run) -> subprocess.Popen[str]:
            command = [sys.executable, "-c", WORKER, str(store.root), run.id]
            process = subprocess.Popen(command, cwd=HOME, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            ends.enter_context(process)  # waits for its end
            ends.callback(process.kill)
            return process

        yield start


def order(store: RunStore) -> list[str]:
    return list(device_queue.waiting_runs(store))


def test_first_come_first_served_whatever_is_killed(store: RunStore, worker) -> None:
    runs = [store.create(SPEC) for _ in range(4)]
    first = worker(runs[0])
    assert first.stdout.readline() == "True\n"
    others = []
    for run in reversed(runs[1:]):  # processes start in another order than their runs were requested
        others.insert(0, worker(run))
        until(lambda run=run: run.id in order(store))
    assert order(store) == [run.id for run in runs[1:]]
    assert [w.ahead for w in device_queue.waiting_runs(store).values()] == [0, 1, 2]
    assert device_queue.waiting_runs(store)[runs[1].id].running == (runs[0].id,)
    assert all(run.status() == "queued" for run in runs)

    # A killed waiting process does not change the order; a cancelled one leaves immediately.
    others[0].send_signal(signal.SIGKILL)
    runs[2].request_cancel()
    assert others[1].stdout.readline() == "False\n"
    until(lambda: order(store) == [runs[3].id])
    assert locks.holder(store.root / ".queue" / "cpu" / "slot-0") == first.pid

    # The next process gets the slot when its holder is killed.
    first.send_signal(signal.SIGKILL)
    assert others[2].stdout.readline() == "True\n"
    assert device_queue.waiting_runs(store) == {}
    assert device_queue.running_on(store, "cpu") == [runs[3].id]


def test_what_a_killed_one_left_does_not_keep_its_successor_waiting(store: RunStore, worker) -> None:
    first, second = store.create(SPEC), store.create(SPEC)
    at_work = worker(first)
    assert at_work.stdout.readline() == "True\n"
    waiting = worker(second)
    until(lambda: order(store) == [second.id])
    for process in (waiting, at_work):
        process.kill()
        process.wait()
    with second.lock():  # before any process reads the queue
        second.update(state="queued", queued=time.monotonic())
    again = worker(second)
    assert again.stdout.readline() == "True\n"
    assert list((store.root / ".queue" / "cpu").glob("*-*-*")) == []


def test_jobs_wait_for_jobs_and_not_for_trainings(store: RunStore) -> None:
    training, first, second = (store.create(SPEC) for _ in range(3))
    device_queue.start_now(second)  # left by an earlier training run
    with training.lock(), device_queue.acquire_slot(training, wait=True) as begins:
        assert begins
        with first.lock(), device_queue.acquire_slot(first, wait=True, job=True) as begins:
            assert begins
            looks = iter([False, False, True])
            with (
                second.lock(),
                device_queue.acquire_slot(second, wait=True, job=True, given_up=lambda: next(looks)) as begins,
            ):
                assert not begins
            assert device_queue.running_on(store, "cpu", job=True) == [first.id]
        assert device_queue.running_on(store, "cpu") == [training.id]
        with second.lock(), device_queue.acquire_slot(second, wait=True, job=True) as begins:
            assert begins


def test_who_is_in_a_hurry_begins_beside_the_others(store: RunStore, worker) -> None:
    first, second = store.create(SPEC), store.create(SPEC)
    assert worker(first).stdout.readline() == "True\n"
    hurried = worker(second)
    until(lambda: order(store) == [second.id])
    device_queue.start_now(second)
    assert hurried.stdout.readline() == "True\n"
    assert order(store) == []
    device_queue.clear_start_now(second)
    assert not (second.path / "hurry").exists()


def test_what_was_started_by_hand_waits_for_nobody_but_keeps_others_waiting(store: RunStore, worker) -> None:
    mine, queued = store.create(SPEC), store.create(SPEC)
    with mine.lock(), device_queue.acquire_slot(mine, wait=False) as begins:
        assert begins
        other = worker(queued)
        until(lambda: order(store) == [queued.id])
        again = store.create(SPEC)
        with again.lock(), device_queue.acquire_slot(again, wait=False) as begins:
            assert begins
    assert other.stdout.readline() == "True\n"


def test_as_many_at_once_as_there_are_slots(store: RunStore, monkeypatch: pytest.MonkeyPatch, worker) -> None:
    monkeypatch.setenv("DML_CPU_RUNS", "2")
    runs = [store.create(SPEC) for _ in range(3)]
    assert [worker(run).stdout.readline() for run in runs[:2]] == ["True\n", "True\n"]
    worker(runs[2])
    until(lambda: order(store) == [runs[2].id])
    assert set(device_queue.running_on(store, "cpu")) == {run.id for run in runs[:2]}


def test_the_device_of_a_spec_and_its_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DML_CPU_RUNS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)))
    assert device_queue.count_slots("cpu") == 3
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert device_queue.count_slots("cpu") == 1
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2, 3")
    assert (device_queue.visible_gpus(), device_queue.count_slots("cuda")) == (("2", "3"), 2)
    assert device_queue.device_of(RunSpec()) == device_queue.device_of(RunSpec(device="cuda")) == "cuda"
    assert device_queue.device_of(SPEC) == "cpu"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,-1,2")  # CUDA ignores all entries after a negative one
    assert device_queue.visible_gpus() == ("3",)
    for none in ("", "-1"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", none)
        assert device_queue.device_of(RunSpec(device="cuda")) == "cpu"


def test_the_slot_chooses_the_gpu(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    first, second = store.create(RunSpec()), store.create(RunSpec())
    with first.lock(), device_queue.acquire_slot(first, wait=True):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "4"
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")  # in the numbering of another process
        with second.lock(), device_queue.acquire_slot(second, wait=True):
            assert os.environ["CUDA_VISIBLE_DEVICES"] == "7"


def test_a_run_of_several_processes_takes_a_slot_for_each(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(processes: int, cards: str, spec: RunSpec) -> tuple[int, str]:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", cards)
        run = store.create(spec)
        with run.lock():
            run.update(processes=processes)
            with device_queue.acquire_slot(run, wait=False):
                device: device_queue.Device = "cuda" if cards else "cpu"
                folder = device_queue._folder(store.root, device)
                assert device_queue.running_on(store, device) == [run.id]
                return sum(bool(locks.holder(slot)) for slot in folder.glob("slot-?")), os.environ[
                    "CUDA_VISIBLE_DEVICES"
                ]

    assert taken(2, "3,5,7", RunSpec()) == (2, "3,5")
    assert taken(1, "3,5,7", RunSpec()) == (1, "3")
    monkeypatch.setenv("DML_CPU_RUNS", "4")
    assert taken(4, "", SPEC) == (2, "")  # two cores per slot
    assert taken(100, "", SPEC) == (4, "")
