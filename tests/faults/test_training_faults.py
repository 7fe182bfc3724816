"""Faults of training runs, one named test per row of the fault matrix; random choices print their seed for replay."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import random
import resource
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dmlcore.data import Dataset
from dmlcore.jobs import launch
from dmlcore.spec import RunSpec
from dmlcore.storage import locks
from dmlcore.storage.runs import Run, RunStore
from dmlcore.training import loop, starts
from dmlcore.training.build import load_data
from dmlcore.training.forks import fork_spec
from dmlcore.training.samplers import BalancedSampler
from dmlcore.training.state import TrainingState
from tests.faults import killed_processes
from tests.faults.killed_processes import KILLED
from tests.started import run_python, until
from tests.wording import says

REPOSITORY = Path(__file__).parents[2]
SPEC = RunSpec().with_overrides(
    ["schedule.steps=30", "schedule.validate_every=10", "schedule.checkpoint_every=7", "model.hidden=[16]"]
)
IMAGES = SPEC.with_overrides(
    ["model.name=resnet20", "batch.classes=2", "batch.samples=2", "schedule.steps=6", "schedule.checkpoint_every=3"]
)
EVENTS_PER_SAVE = 4  # fsync and three renames


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = RunStore(tmp_path_factory.mktemp("uninterrupted")).create(SPEC)
    assert killed_processes.train(run) == 0
    assert run.status() == "done"
    return run


def outcome(run: Run) -> dict[str, str]:
    """Return the SHA-256 of everything that a run leaves: weights, optimiser and progress; metrics; embeddings."""
    embeddings = run.embeddings()
    assert embeddings is not None
    files = [run.path / "last.ckpt", run.path / "metrics.jsonl", embeddings]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def put_back(run: Run) -> None:
    with run.lock():
        launch.prepare_resume(run)


def train_here(run: Run, **options: Any) -> None:
    with run.lock():
        loop.train(run, **options)


def steps_done(run: Run) -> int:
    return max((row["step"] for row in run.metrics()[0]), default=-1)


@pytest.fixture(scope="module")
def killed_half_way(tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = RunStore(tmp_path_factory.mktemp("half")).create(SPEC)
    assert killed_processes.train(run, die_at_step=25) == KILLED
    return run


@pytest.fixture
def half_trained(killed_half_way: Run, store: RunStore) -> Run:
    """Return a run that was killed after step 25, with checkpoints of steps 21 and 14."""
    shutil.copytree(killed_half_way.path, store.root / killed_half_way.id)
    run = store.open(killed_half_way.id)
    assert run.status() == "lost"
    return run


def killed_from_outside(run: Run, step: int) -> int | None:
    """Return the exit code of a process that trains `run` and is killed shortly after a step: 0 if it ended before."""
    process = killed_processes.begin(run)
    until(lambda: steps_done(run) >= step)
    process.kill()
    status = killed_processes.end(process)
    return 0 if run.status() == "done" else status


@pytest.mark.parametrize("trial", range(2))  # kills.py uses larger numbers
def test_row_1_kill_9_changes_nothing(trial: int, uninterrupted: Run, store: RunStore) -> None:
    seed = secrets.randbits(32)
    print(f"replay with seed = {seed}")
    choose = random.Random(seed)
    run = store.create(SPEC)
    if trial % 2:  # inside a save
        saves = SPEC.schedule.steps // SPEC.schedule.checkpoint_every
        status = killed_processes.train(run, die_at_event=choose.randrange(EVENTS_PER_SAVE * saves))
    else:  # anywhere, shortly after a step
        status = killed_from_outside(run, choose.randrange(22))
        while status != KILLED:  # on a busy machine the run may end before the signal: try another one
            run = store.create(SPEC)
            status = killed_from_outside(run, choose.randrange(22))
    assert status == KILLED
    assert run.status() == "lost"
    put_back(run)
    assert killed_processes.train(run) == 0
    assert run.status() == "done"
    assert outcome(run) == outcome(uninterrupted)


def test_row_1_kill_9_inside_the_first_save_and_each_event(uninterrupted: Run, store: RunStore) -> None:
    run = store.create(SPEC)
    for event in range(3 + EVENTS_PER_SAVE):  # three events in the first save, which has no file to rotate
        assert killed_processes.train(run, die_at_event=event) == KILLED
        put_back(run)
    assert killed_processes.train(run) == 0
    assert outcome(run) == outcome(uninterrupted)


def test_row_1_kill_9_around_each_event_of_keeping_checkpoints(store: RunStore) -> None:
    spec = SPEC.with_overrides(["schedule.steps=9", "schedule.keep_every=3"])
    whole, killed = store.create(spec), store.create(spec)
    assert killed_processes.train(whole) == 0
    # At the link after the first save, at the link and rename that a resume repeats, and at the rename of step 3.
    for event in (3, 0, 1, 2 + EVENTS_PER_SAVE + 1):
        assert killed_processes.train(killed, die_at_event=event) == KILLED
        put_back(killed)
    assert killed_processes.train(killed) == 0
    assert outcome(killed) == outcome(whole)
    kept = [sorted((run.path / "kept").iterdir()) for run in (whole, killed)]
    assert [path.name for path in kept[0]] == [f"{step:08}.ckpt" for step in (0, 3, 6, 9)]
    assert [path.name for path in kept[1]] == [path.name for path in kept[0]]
    for mine, theirs in zip(*kept, strict=True):
        assert mine.read_bytes() == theirs.read_bytes()


def test_row_1_kill_9_of_a_fork(uninterrupted: Run, store: RunStore) -> None:
    parent = store.create(SPEC.with_overrides(["schedule.steps=14"]))
    assert killed_processes.train(parent) == 0
    spec = parent.spec.with_overrides(
        [f"fork.run={parent.id}", "fork.step=14", "schedule.steps=37", "loss.name=contrastive", "fork.leave_out=[3]"]
    )
    whole, killed = store.create(spec), store.create(spec)
    assert killed_processes.train(whole) == 0
    for fate in ({"die_at_event": 1}, {"die_at_event": 3}, {"die_at_step": 5}, {"die_at_event": 5}):
        assert killed_processes.train(killed, **fate) == KILLED
        put_back(killed)
    parent.delete()
    assert killed_processes.train(killed) == 0
    assert outcome(killed) == outcome(whole)
    assert killed.metrics()[0] != uninterrupted.metrics()[0]


@pytest.mark.parametrize("workers", [0, 2])
def test_row_1_kill_9_of_a_convolutional_network(workers: int, store: RunStore) -> None:
    """The processes that read batches survive the kill for seconds, but hold neither the lock nor a file."""
    spec = IMAGES.with_overrides([f"compute.workers={workers}"])
    whole, killed = store.create(spec), store.create(spec)
    assert killed_processes.train(whole, images=True) == 0
    assert killed_processes.train(killed, images=True, die_at_step=5) == KILLED
    put_back(killed)
    assert killed_processes.train(killed, images=True) == 0
    assert whole.status() == "done", whole.state().message
    assert outcome(killed) == outcome(whole)


# State in addition to weights and moments: a memory, proxies with their own learning rate, moments that start after a
# warm-up, positions of schedule and plateau, a sampler's table; in float32 and bfloat16.
STRENGTHS: dict[str, list[str]] = {
    "memory, warm-up, cosine, sgd": [
        *("loss.name=contrastive", "loss.memory=3", "loss.memory_start=4", "optimiser.name=sgd"),
        *("optimiser.clip_norm=1.0", "schedule.warm_up=9", "schedule.decay=cosine"),
    ],
    "proxies, plateau, adamw": [
        *("loss.name=proxy_nca", "loss.learning_rate=0.1", "optimiser.name=adamw", "optimiser.head_factor=10"),
        *("optimiser.weight_decay=0.01", "optimiser.decay_batch_norm=false", "optimiser.learning_rate=0.5"),
        *("schedule.plateau=1", "schedule.plateau_factor=0.3", "schedule.monitor=recall_at_1"),
    ],
    "mined batches, step decay, rmsprop": [
        *("batch.sampler=mined", "miner.name=semi_hard", "batch.refresh=8", "optimiser.name=rmsprop"),
        *("batch.balanced_steps=5", "model.dropout=0.3"),
        *("schedule.decay=step", "schedule.decay_every=6", "optimiser.clip_value=0.01"),
    ],
    "projections": [
        *("loss.name=triplet_proxy", "loss.per_class=2", "loss.batch_pairs=0.1", "loss.learning_rate=0.1"),
        *("projection.pool=4", "projection.patience=1", "projection.weight=0.5", "model.normalize=false"),
        *("model.lipschitz=true", "optimiser.learning_rate=0.3", "schedule.covering_every=4"),
    ],
    "conditioned": [
        *("loss.name=tuplet", "conditioning.neighbours=4", "conditioning.after=6", "conditioning.order=random"),
        *("conditioning.continued=true", "batch.refresh=5", "conditioning.among=train"),
    ],
    "random miner, monitored test": [
        *("miner.name=distance_weighted", "batch.sampler=random", "schedule.monitor_part=test"),
        *("compute.precision=bfloat16", "data.validation=none"),
    ],
}
SHORT = ["schedule.steps=22", "schedule.validate_every=4", "schedule.checkpoint_every=5", "schedule.measure_every=3"]


@pytest.mark.parametrize("kind", STRENGTHS)
def test_row_1_kill_9_changes_nothing_at_full_strength(kind: str, store: RunStore) -> None:
    seed = secrets.randbits(32)
    print(f"replay with seed = {seed}")
    choose = random.Random(seed)
    spec = SPEC.with_overrides([*SHORT, *STRENGTHS[kind]])
    whole, killed = store.create(spec), store.create(spec)
    assert killed_processes.train(whole) == 0
    assert whole.status() == "done", whole.state().message
    assert killed_processes.train(killed, die_at_step=choose.randrange(6, 14)) == KILLED
    put_back(killed)
    assert killed_processes.train(killed, die_at_event=choose.randrange(2 * EVENTS_PER_SAVE)) == KILLED
    put_back(killed)
    assert killed_processes.train(killed) == 0
    assert outcome(killed) == outcome(whole)


def test_row_1_kill_9_of_a_convolutional_network_in_bfloat16(store: RunStore) -> None:
    spec = IMAGES.with_overrides(
        [
            *(
                "model.name=conv4_32",
                "compute.precision=bfloat16",
                "batch.sampler=neighbourhood",
                "batch.neighbours=2",
                "batch.refresh=4",
            ),
            *("schedule.warm_up=3", "data.crop=resized", "optimiser.name=adamw", "optimiser.weight_decay=0.01"),
        ]
    )
    whole, killed = store.create(spec), store.create(spec)
    assert killed_processes.train(whole, images=True) == 0
    assert whole.status() == "done", whole.state().message
    assert killed_processes.train(killed, images=True, die_at_step=5) == KILLED
    put_back(killed)
    assert killed_processes.train(killed, images=True) == 0
    assert outcome(killed) == outcome(whole)


def test_a_run_from_before_fused_kernels_goes_on_with_plain_ones(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = SPEC.with_overrides(SHORT)
    whole, old = store.create(spec), store.create(spec)
    train_here(whole)
    steps = iter(range(100))
    train_here(old, stop=lambda: next(steps) == 7)
    saved = loop.checkpoint.load(old.path)
    assert saved is not None
    facts = {key: value for key, value in saved.facts.items() if key != "fused"}
    loop.checkpoint.save(old.path, saved.tensors, facts)
    put_back(old)
    monkeypatch.setattr(loop.optimisers, "LARGE", 1)  # from here on, this network would get fused kernels
    train_here(old)
    assert (old.path / "metrics.jsonl").read_bytes() == (whole.path / "metrics.jsonl").read_bytes()


def test_row_2_sigterm_finishes_the_step_and_saves(store: RunStore) -> None:
    run = store.create(SPEC.with_overrides(["schedule.steps=1000000"]))
    command = [sys.executable, "-m", "dmlcore", "work", "train", run.id, "--runs", str(store.root)]
    worker = subprocess.Popen(command, cwd=REPOSITORY)
    until(lambda: steps_done(run) >= 3)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(180) == 130
    state = run.state()
    assert (run.status(), state.step) == ("cancelled", steps_done(run))
    saved = loop.checkpoint.load(run.path)
    assert saved is not None
    assert saved.facts["step"] == state.step
    assert saved.facts["metrics_offset"] == (run.path / "metrics.jsonl").stat().st_size
    assert "resume" in state.message


class Poisoned:
    """Return inputs whose `batch`-th balanced batch is modified by `spoil`."""

    def __init__(self, data: Dataset, size: int, batch: int, spoil: Callable[[Any], None]) -> None:
        self.inputs, self.size, self.left, self.spoil = data.inputs, size, batch, spoil
        self.shape, self.dtype = data.inputs.shape, data.inputs.dtype

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: Any) -> Any:
        values = np.array(self.inputs[index])
        if len(values) == self.size:
            self.left -= 1
            if self.left == 0:
                self.spoil(values)
        return values


def poisoned(spec: RunSpec, batch: int, spoil: Callable[[Any], None]) -> Dataset:
    data = load_data(spec)
    inputs = Poisoned(data, spec.batch.classes * spec.batch.samples, batch, spoil)
    return Dataset(data.name, inputs, data.labels, data.class_names, data.splits, data.image, data.notes)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30], ids=["nan", "inf", "overflow"])
def test_row_3_not_finite_stops_before_the_optimiser(value: float, store: RunStore, uninterrupted: Run) -> None:
    def spoil(values: Any) -> None:
        values[3, 5] = value

    spec = SPEC.with_overrides(["model.normalize=false"])
    run = store.create(spec)
    train_here(run, dataset=poisoned(spec, 17, spoil))
    state = run.state()
    assert (state.state, state.step) == ("failed", 16)
    assert "step 17" in state.message
    data = load_data(spec)
    sampler = BalancedSampler(data.labels[data.splits["train"]], 8, 8, seed=0)
    failure = json.loads((run.path / "failure.json").read_text())
    assert failure == {"step": 17, "indices": data.splits["train"][sampler.batch(17)].tolist()}
    saved = loop.checkpoint.load(run.path)
    assert saved is not None
    assert saved.facts["step"] == 14
    assert all(torch.isfinite(t).all() for t in saved.tensors.values())

    if not np.isnan(value):
        return  # continues like the others
    put_back(run)
    train_here(run)
    whole = store.create(spec)
    train_here(whole)
    assert outcome(run) == outcome(whole)


def test_row_3_gradient_that_is_not_finite_stops_before_the_optimiser(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    backward_passes = 0

    def spoil(gradient: torch.Tensor) -> torch.Tensor:
        nonlocal backward_passes
        backward_passes += 1
        return gradient * torch.inf if backward_passes == 17 else gradient

    def build(*arguments: Any, **options: Any) -> TrainingState:
        state = train_build(*arguments, **options)
        next(state.model.parameters()).register_hook(spoil)
        return state

    train_build = starts.build
    monkeypatch.setattr(starts, "build", build)
    run = store.create(SPEC)
    train_here(run)
    state = run.state()
    assert (state.state, state.step) == ("failed", 16)
    assert says(state.message, "step 17", "the gradient is NaN")


def test_row_4_out_of_memory_fails_with_advice(store: RunStore) -> None:
    def exhaust(_: Any) -> None:
        limits = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (2**30, limits[1]))
        try:
            torch.empty(2**36)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, limits)

    run = store.create(SPEC)
    train_here(run, dataset=poisoned(SPEC, 9, exhaust))
    state = run.state()
    assert state.state == "failed"
    assert state.message.startswith("memory: the batch of 8 x 8")
    assert state.step == 8


def test_row_5_disk_full_leaves_the_old_checkpoint(uninterrupted: Run, store: RunStore) -> None:
    run = store.create(SPEC)
    assert killed_processes.train(run, fill_at=24) == 0
    state = run.state()
    assert state.state == "failed"
    assert state.message.startswith("disk full")
    saved = loop.checkpoint.read(run.path / "last.ckpt")
    assert saved.facts["step"] == 21
    assert all(line.startswith(b"{") for line in (run.path / "metrics.jsonl").read_bytes().splitlines())
    put_back(run)
    assert killed_processes.train(run) == 0
    assert outcome(run) == outcome(uninterrupted)


def offset(run: Run, name: str) -> int:
    return int(loop.checkpoint.read(run.path / name).facts["metrics_offset"])


def test_metrics_cut_below_the_last_checkpoint_fall_back_to_the_one_before(
    uninterrupted: Run, half_trained: Run
) -> None:
    run = half_trained
    os.truncate(run.path / "metrics.jsonl", offset(run, "last.ckpt") - 1)
    put_back(run)
    assert killed_processes.train(run) == 0
    assert outcome(run) == outcome(uninterrupted)
    log = "\n".join(run.log_tail())
    assert "metrics.jsonl has" in log
    assert "from step 14 to 30" in log


@pytest.mark.parametrize("gone", [False, True], ids=["cut", "gone"])
def test_metrics_cut_below_both_checkpoints_say_what_to_do_and_that_works(
    gone: bool, store: RunStore, half_trained: Run
) -> None:
    run = half_trained
    metrics = run.path / "metrics.jsonl"
    whole = metrics.read_bytes()
    metrics.unlink() if gone else os.truncate(metrics, offset(run, "prev.ckpt") - 1)
    put_back(run)
    assert killed_processes.train(run) == 0
    state = run.state()
    assert state.state == "failed"
    size = 0 if gone else offset(run, "prev.ckpt") - 1
    assert f"{size:,} bytes and was truncated: last.ckpt of step 21" in state.message
    assert f"python -m dmlcore fork {run.id} --step 14" in state.message
    assert (not metrics.exists()) or metrics.read_bytes() == whole[: offset(run, "prev.ckpt") - 1]

    fork = store.create(fork_spec.create(run, 21))
    assert killed_processes.train(fork) == 0
    assert fork.state().state == "done", fork.state().message
    metrics.write_bytes(whole)
    put_back(run)
    assert killed_processes.train(run) == 0
    assert run.state().state == "done"


class Evil:
    """Object whose unpickling creates the named file."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return Path.touch, (self.marker,)


def flip(contents: bytes) -> bytes:
    middle = len(contents) // 2
    return contents[:middle] + bytes([contents[middle] ^ 1]) + contents[middle + 1 :]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "flipped": flip,
    "truncated": lambda contents: contents[:-100],
    "empty": lambda contents: b"",
    "digest only": lambda contents: contents[:65],
    "no digest": lambda contents: contents[65:],
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_row_6_damaged_checkpoint_falls_back_and_warns(kind: str, uninterrupted: Run, half_trained: Run) -> None:
    run = half_trained
    last = run.path / "last.ckpt"
    last.write_bytes(DAMAGE[kind](last.read_bytes()))
    put_back(run)
    assert killed_processes.train(run) == 0
    assert outcome(run) == outcome(uninterrupted)
    log = "\n".join(run.log_tail())
    assert "last.ckpt is damaged" in log
    assert "from step 14 to 30" in log


@pytest.mark.parametrize("kind", ["flipped", "gone"])
def test_row_7_without_a_good_generation_it_refuses(kind: str, half_trained: Run) -> None:
    run = half_trained
    before = (run.path / "metrics.jsonl").read_bytes()
    for name in ("last.ckpt", "prev.ckpt"):
        path = run.path / name
        path.write_bytes(flip(path.read_bytes())) if kind == "flipped" else path.unlink()
    # A killed worker may not have recorded its last step; without checkpoints, only the state is left.
    with run.lock():
        run.update(state="queued", step=21)
    assert killed_processes.train(run) == 0
    state = run.state()
    assert state.state == "failed"
    assert {"flipped": "prev.ckpt is damaged", "gone": "both checkpoints are missing"}[kind] in state.message
    assert (run.path / "metrics.jsonl").read_bytes() == before


def test_row_8_hostile_pickle_is_refused_and_not_run(half_trained: Run, tmp_path: Path) -> None:
    run, marker = half_trained, tmp_path / "executed"
    evil = pickle.dumps(Evil(marker))
    wrapped = hashlib.sha256(evil).hexdigest().encode() + b"\n" + evil
    (run.path / "last.ckpt").write_bytes(evil)
    (run.path / "prev.ckpt").write_bytes(wrapped)  # even with a valid digest
    put_back(run)
    train_here(run)
    assert run.state().state == "failed"
    assert not marker.exists()
    pickle.loads(evil)
    assert marker.exists()  # the attack works on an unprotected reader


@pytest.mark.parametrize("shift", [-86400.0, 86400.0], ids=["a day back", "a day on"])
def test_row_9_clock_jumps_change_nothing(shift: float, store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    run, real = store.create(SPEC.with_overrides(["schedule.steps=20"])), time.time
    seen: list[str] = []

    def jump() -> bool:
        monkeypatch.setattr(time, "time", lambda: real() + shift)
        seen.append(run.status())
        return False

    monkeypatch.setattr(time, "time", lambda: real() + shift)
    assert run.status() == "queued"
    monkeypatch.setattr(time, "time", real)
    train_here(run, stop=jump)
    assert set(seen) == {"running"}
    assert run.status() == "done"
    assert 0 < run.state().seconds < 3600


def test_row_10_second_process_exits_75(store: RunStore) -> None:
    run = store.create(SPEC)
    with run.lock():
        for arguments in (("resume", run.id), ("work", "train", run.id)):
            second = run_python("-m", "dmlcore", *arguments, "--runs", str(store.root))
            assert second.returncode == 75
            assert f"in use by process {os.getpid()}" in second.stderr
            assert "Traceback" not in second.stderr
        assert run.is_alive()  # and the first one has not lost its lock


def test_row_13_edited_spec_is_refused_with_the_difference(half_trained: Run) -> None:
    run = half_trained
    (run.path / "spec.json").write_text(SPEC.with_overrides(["optimiser.learning_rate=0.5"]).to_json())
    put_back(run)
    assert killed_processes.train(run) == 0
    state = run.state()
    assert state.state == "failed"
    assert "optimiser.learning_rate: 0.001 | 0.5" in state.message


def test_row_35_cancel_twice_gives_one_state(store: RunStore) -> None:
    run = store.create(SPEC.with_overrides(["schedule.steps=1000000"]))
    training = killed_processes.begin(run)
    until(lambda: steps_done(run) >= 3)
    together = threading.Barrier(2)

    def cancel() -> None:
        together.wait()
        launch.cancel(run)

    threads = [threading.Thread(target=cancel) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    killed_processes.end(training)
    assert run.status() == "cancelled"
    launch.cancel(run)
    assert run.status() == "cancelled"


def test_row_35_cancel_at_the_finish_gives_one_state(store: RunStore) -> None:
    run = store.create(SPEC.with_overrides(["schedule.steps=30"]))
    training = killed_processes.begin(run)
    until(lambda: steps_done(run) >= 29)
    while run.is_alive():
        launch.cancel(run)
    killed_processes.end(training)
    final = run.status()
    assert final in ("done", "cancelled")
    launch.cancel(run)
    assert run.status() == final


def test_row_35_a_recycled_pid_is_never_signalled(store: RunStore) -> None:
    with subprocess.Popen(["sleep", "3600"]) as stranger:
        started = locks.start_time(stranger.pid)
        assert started is not None
        assert not locks.terminate(stranger.pid, started - 1)

        run = store.create(SPEC)  # its worker is gone, and another process has its ID
        with run.lock():
            run.update(state="running", pid=stranger.pid, started=started - 1)
        launch.cancel(run)
        assert run.status() == "cancelled"

        # alive, but the state names another process
        held = store.create(SPEC.with_overrides(["schedule.steps=1000000"]))
        training = killed_processes.begin(held)
        pid = training.pid
        assert pid
        until(lambda: steps_done(held) >= 1)
        os.kill(pid, signal.SIGSTOP)
        until(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
        state = json.loads((held.path / "state.json").read_text())
        (held.path / "state.json").write_text(json.dumps(state | {"pid": stranger.pid, "started": started}))
        launch.cancel(held)
        spared = stranger.poll() is None
        os.kill(pid, signal.SIGCONT if spared else signal.SIGKILL)  # a waiting caller must not wait forever
        assert spared
        killed_processes.end(training)
        assert held.status() == "cancelled"  # the request file was found
        assert stranger.poll() is None, "signalled, and dead shortly afterwards"

        assert locks.terminate(stranger.pid, started)
        assert stranger.wait(180) == -signal.SIGTERM
