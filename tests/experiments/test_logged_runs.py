"""Runs that another program trains: rows, scores, requests to stop, and every way in which they end."""

import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import dmlcore
from dmlcore.data.dataset import DataError
from dmlcore.experiments import embedding_sets, recovery
from dmlcore.jobs import launch
from dmlcore.metrics import retrieval
from dmlcore.storage import locks
from dmlcore.storage.runs import RunError, RunStore, series
from dmlcore.storage.task import JobError

LABELS = np.arange(40) % 4


def vectors(seed: int = 0) -> np.ndarray:
    """Return 40 vectors (40, 6) near the centres of their four classes."""
    rng = np.random.default_rng(seed)
    return (3 * np.eye(4, 6)[LABELS] + rng.standard_normal((40, 6))).astype(np.float32)


def test_rows_and_scores(tmp_path: Path) -> None:
    run = dmlcore.log_run("My loop", steps=10, runs=tmp_path)
    for step in range(1, 4):
        run.log(step, loss=torch.tensor(1 / step), grad_norm=2.0)
    scores = run.validate(3, torch.from_numpy(vectors()), [f"class {k}" for k in LABELS])
    unit = vectors() / np.linalg.norm(vectors(), axis=1, keepdims=True)
    assert scores.map_at_r == pytest.approx(retrieval(unit, LABELS).map_at_r)
    stored = RunStore(tmp_path).open(run.id)
    assert stored.status() == "running"
    rows = stored.metrics()[0]
    assert series(rows, "step", "grad_norm") == ([1, 2, 3], [2.0] * 3)
    assert series(rows, "validation", "map_at_r") == ([3], [scores.map_at_r])
    done = run.finish(vectors(), LABELS, metadata={"price": range(40)})
    assert (done.status(), done.state().step, done.state().steps) == ("done", 3, 10)
    assert done.is_embedding_set
    assert embedding_sets.of_run(done).columns.column("price").to_pylist() == list(range(40))
    assert done.embeddings() is not None
    assert done.scores()["inputs"]["map_at_r"] == pytest.approx(scores.map_at_r, abs=1e-6)
    assert not list(done.path.glob(".new-*"))


def test_values_that_are_not_finite_are_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with dmlcore.log_run(runs=tmp_path) as run:
        run.log(1, loss=math.nan)
        run.log(2, loss=1.0, norm=math.inf)
        assert "the loss of step 1 is not finite" in caplog.text
        assert run.run.metrics()[0] == [{"kind": "step", "step": 2, "loss": 1.0}]
        with pytest.raises(ValueError, match="norm: expected a number or a tensor with one element"):
            run.log(3, loss=1.0, norm=[1, 2])
        with pytest.raises(ValueError, match="give a step from 0 on"):
            run.log(-1, loss=1.0)
        with pytest.raises(ValueError, match=r"labels: expected one for each of 40 embeddings, got \(3,\)"):
            run.validate(3, vectors(), LABELS[:3])
        with pytest.raises(ValueError, match="some values are not finite"):
            run.validate(3, np.full((40, 2), np.nan), LABELS)
    assert run.run.state().message == "trained 2 steps; no embeddings were stored"


def test_invalid_embeddings_leave_the_run_open(tmp_path: Path) -> None:
    with dmlcore.log_run(runs=tmp_path) as run:
        with pytest.raises(DataError):
            run.finish(np.zeros((40, 6)), LABELS)
        run.finish(vectors(), LABELS)
    assert run.run.status() == "done"
    with pytest.raises(RunError, match="has ended"):
        run.log(9, loss=1.0)


def test_an_exception_fails_the_run(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), dmlcore.log_run(runs=tmp_path) as run:
        run.log(1, loss=1 / 0)
    assert (run.run.status(), run.run.state().message) == ("failed", "ZeroDivisionError: division by zero")


def test_a_cancelled_run_asks_its_program_and_sends_no_signal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "terminate", lambda *_: pytest.fail("a signal was sent"))
    with dmlcore.log_run(runs=tmp_path) as run:
        run.log(1, loss=1.0)
        assert not run.should_stop
        launch.cancel(RunStore(tmp_path).open(run.id))
        assert run.should_stop
    assert run.run.status() == "cancelled"
    with pytest.raises(JobError, match="trained by another program"):
        launch.resume(run.run)
    assert run.run.status() == "cancelled"


PROGRAM = """
import os, sys, dmlcore
run = dmlcore.log_run("killed", runs=sys.argv[1])
for step in range(1, 6):
    run.log(step, loss=1.0)
print(run.id, flush=True)
os.kill(os.getpid(), 9)
"""


def test_a_killed_program_leaves_a_readable_lost_run(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    run = RunStore(tmp_path).open(ended.stdout.strip())
    assert run.status() == "lost"
    assert len(run.metrics()[0]) == 5
    assert recovery.recover(RunStore(tmp_path)) == []
    assert run.status() == "lost"
