"""Checkpoints that a thread writes during a training run on a device."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dmlcore.spec import RunSpec
from dmlcore.storage import checkpoint, locks
from dmlcore.storage.runs import Run, RunState, RunStore
from dmlcore.training import checkpoint_writer, loop
from dmlcore.training.checkpoint_writer import CheckpointWriter
from tests.devices.pretended import pretended
from tests.devices.samples import few_of

SPEC = RunSpec().with_overrides(
    [
        *("data.name=toy", "model.hidden=[8]", "schedule.steps=9", "schedule.validate_every=4"),
        *("schedule.checkpoint_every=2",),
    ]
)
save = checkpoint.save


def train(run: Run, stop: Callable[[], bool] = lambda: False) -> RunState:
    with run.lock(), pretended():
        return loop.train(run, dataset=few_of("toy"), stop=stop)


def test_training_goes_on_while_one_is_written_and_leaves_out_what_is_due_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, written = threading.Event(), []

    def slow(folder: Path, tensors: Any, facts: Any) -> str:
        if facts["step"] == 2:
            assert go_on.wait(60)
        written.append((facts["step"], threading.current_thread() is threading.main_thread()))
        return save(folder, tensors, facts)

    def stop() -> bool:  # called after every step: the sixth step is made while the second is being written
        seen.append(len(written))
        if len(seen) == 6:
            go_on.set()
            wait_for(lambda: len(written) == 2)
        return False

    seen: list[int] = []
    monkeypatch.setattr(checkpoint, "save", slow)
    run = RunStore(tmp_path).create(SPEC)
    assert train(run, stop).state == "done"
    assert seen[1:6] == [1] * 5
    assert [step for step, _ in written][:2] == [0, 2]
    assert 4 not in [step for step, _ in written]
    assert written[-1][0] == 9
    assert not any(in_main for _, in_main in written)


def wait_for(condition: Callable[[], bool]) -> None:
    for _ in range(6000):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError("timed out")


def test_each_file_is_that_of_its_step_byte_for_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = SPEC.with_overrides(["schedule.keep_every=2", "optimiser.name=sgd"])
    beside, at_once = (RunStore(tmp_path).create(kept) for _ in range(2))
    write = CheckpointWriter._write

    def late(self: CheckpointWriter, *what: Any) -> None:
        threading.Event().wait(0.2)  # by then the next step has been made
        write(self, *what)

    monkeypatch.setattr(CheckpointWriter, "_write", late)
    assert train(beside).state == "done"
    monkeypatch.setattr(
        CheckpointWriter, "save", lambda self, state, sync: checkpoint_writer.save(self._run, state, sync())
    )
    assert train(at_once).state == "done"
    files = [sorted((run.path / "kept").iterdir()) for run in (beside, at_once)]
    assert [path.name for path in files[0]] == [f"{step:08}.ckpt" for step in (0, 2, 4, 6, 8, 9)]
    for one, other in zip(*files, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_a_full_disk_ends_the_run_and_leaves_the_checkpoint_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(folder: Path, tensors: Any, facts: Any) -> str:
        if facts["step"] >= 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        return save(folder, tensors, facts)

    monkeypatch.setattr(checkpoint, "save", full)
    run = RunStore(tmp_path).create(SPEC.with_overrides(["schedule.keep_every=2"]))
    state = train(run)
    assert state.state == "failed"
    assert "disk full" in state.message
    saved = checkpoint.load(run.path)
    assert saved is not None
    assert saved.facts["step"] == 2
    monkeypatch.setattr(checkpoint, "save", save)
    with run.lock():
        run.update(state="queued")
    assert train(run).state == "done"


def test_nobody_writes_once_the_lock_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If an error ends the training run while the thread is writing, the run waits for it and keeps the file."""

    def slow(folder: Path, tensors: Any, facts: Any) -> str:
        threading.Event().wait(0.3 if facts["step"] else 0)
        assert locks.is_held_here(folder / "lock")
        return save(folder, tensors, facts)

    def stop() -> bool:
        steps.append(None)
        if len(steps) == 3:
            raise RuntimeError("of the third step")
        return False

    steps: list[None] = []
    monkeypatch.setattr(checkpoint, "save", slow)
    run = RunStore(tmp_path).create(SPEC)
    assert "of the third step" in train(run, stop).message
    saved = checkpoint.load(run.path)
    assert saved is not None
    assert saved.facts["step"] == 2
