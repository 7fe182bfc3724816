"""Batches that other processes read."""

import itertools
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dmlcore.data import DataError, Dataset
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import RunStore
from dmlcore.training import batch_workers, loop
from dmlcore.training.batches import Batches
from dmlcore.training.build import load_data
from dmlcore.typing import Ints, Pixels
from tests.started import until

pytestmark = pytest.mark.processes

CPU = torch.device("cpu")
BASE = RunSpec().with_overrides(
    ["batch.classes=4", "batch.samples=3", "schedule.steps=9", "data.crop=resized", "compute.workers=2"]
)
ALONE = BASE.with_overrides(["compute.workers=0"])


class Photographs:
    """Images of unequal sizes; each has another colour."""

    shape, dtype = (36, 3, 16, 16), np.dtype(np.uint8)

    def __init__(self) -> None:
        random = np.random.default_rng(0)
        self.images = [random.integers(0, 256, (18, random.integers(18, 40), 3), np.uint8) for _ in range(36)]

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, rows: Any) -> Pixels:
        return np.stack([self.images[row][:16, :16] for row in np.arange(36)[rows]]).transpose(0, 3, 1, 2)

    def uncut(self, rows: Ints) -> list[Pixels]:
        return [self.images[row] for row in rows]


class Damaged(Photographs):
    def uncut(self, rows: Ints) -> list[Pixels]:
        if multiprocessing.parent_process() is not None:
            raise DataError("bird.jpg is damaged")
        return super().uncut(rows)


def images(inputs: Photographs) -> Dataset:
    splits = {"train": np.arange(24), "validation": np.arange(0), "test": np.arange(24, 36)}
    return Dataset("photographs", inputs, np.arange(36) % 6, tuple("abcdef"), splits, None, ())


def never(indices: Ints) -> Any:
    raise AssertionError("no table was needed")


def alive() -> set[int]:
    return {child.pid or 0 for child in multiprocessing.active_children()}


@pytest.mark.parametrize("kind", ["vectors", "images", "images of another size than the first batch"])
def test_processes_read_the_same_batches(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if "another" in kind:
        monkeypatch.setattr(batch_workers, "ROOM", 0.01)
        monkeypatch.setattr(batch_workers.mmap, "PAGESIZE", 64)
    data = load_data(BASE) if kind == "vectors" else images(Photographs())
    alone, shared = Batches(ALONE, data, CPU), Batches(BASE, data, CPU)
    with closing(shared):
        state = torch.random.get_rng_state()
        for step in range(1, 10):
            a, b = alone.make(step, never), shared.make(step, never)
            assert np.array_equal(a.indices, b.indices)
            assert torch.equal(a.labels, b.labels)
            assert torch.equal(a.inputs, b.inputs)
            assert (shared._workers is not None) is (step > 1)
        assert torch.equal(torch.random.get_rng_state(), state)


def test_a_step_out_of_order_is_read_here() -> None:
    data, before = images(Photographs()), alive()
    alone, shared = Batches(ALONE, data, CPU), Batches(BASE, data, CPU)
    with closing(shared):
        for step in (1, 2, 3, 7, 1, 4, 5):
            assert torch.equal(alone.make(step, never).inputs, shared.make(step, never).inputs)
        assert len(alive() - before) == 2
    assert alive() <= before


def test_a_resumed_run_is_the_same_with_any_number_of_processes(tmp_path: Path) -> None:
    runs = []
    for workers in ((0,), (2,), (1, 2)):
        run = RunStore(tmp_path).create(BASE.with_overrides(["data.validation=none", "schedule.monitor_part=test"]))
        for part, count in enumerate(workers):
            with run.lock(), pytest.MonkeyPatch.context() as patch:
                run.update(state="queued")
                patch.setattr(batch_workers, "count", lambda *_, count=count: count)
                stopped = part + 1 < len(workers)
                steps = itertools.count(1)
                state = loop.train(run, stop=lambda stopped=stopped, steps=steps: stopped and next(steps) == 4)
                assert state.state == ("cancelled" if stopped else "done"), state.message
        runs.append([(run.path / name).read_bytes() for name in ("metrics.jsonl",)])
    assert runs[0] == runs[1] == runs[2]
    assert not alive()


def test_an_image_that_a_process_cannot_read_fails_the_run_with_its_name(tmp_path: Path) -> None:
    run = RunStore(tmp_path).create(BASE.with_overrides(["model.name=conv4_32", "data.validation=none"]))
    with run.lock():
        state = loop.train(run, dataset=images(Damaged()))
    assert (state.state, state.message) == ("failed", "bird.jpg is damaged")
    assert not alive()


def test_processes_end_when_the_training_process_is_killed(tmp_path: Path) -> None:
    def train() -> None:
        batches = Batches(BASE, images(Photographs()), CPU)
        for step in (1, 2, 3):
            batches.make(step, never)
        (tmp_path / "pids").write_text(" ".join(map(str, alive())))
        time.sleep(60)

    pids = [*map(int, killed(train, tmp_path / "pids").split())]
    assert len(pids) == 2
    until(lambda: not any(map(running, pids)))


def killed(work: Callable[[], None], file: Path) -> str:
    """Run `work` in a process and kill it with SIGKILL once it has written `file`; return the contents."""
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    until(lambda: file.exists() and bool(file.read_text()))
    os.kill(process.pid or 0, signal.SIGKILL)
    process.join()
    return file.read_text()


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_processes_start_only_for_long_runs_on_a_gpu() -> None:
    cuda = torch.device("cuda")
    assert batch_workers.count(-1, CPU, 1.0, 10_000) == 0
    assert batch_workers.count(-1, cuda, 0.01, 100) == 0
    assert batch_workers.count(-1, cuda, 0.01, 1000) >= 1
    assert batch_workers.count(0, cuda, 1.0, 10_000) == 0
    assert batch_workers.count(3, CPU, 1e-6, 1) == 3
