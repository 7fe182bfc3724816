from pathlib import Path

import numpy as np
import pytest

from dmlcore.inspection import snapshots
from dmlcore.inspection.neighbours import read
from dmlcore.spec import RunSpec
from dmlcore.storage import checkpoint, run_directory
from dmlcore.storage.runs import Run, RunError, RunStore, scores, series
from dmlcore.training import evaluation, loop, starts
from dmlcore.training.state import use_best


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with checkpoints kept at steps 0, 8, 16 and 24; its last step, 28, is no multiple of 8."""
    spec = RunSpec().with_overrides(
        [
            *("schedule.steps=28", "schedule.validate_every=10", "schedule.keep_every=8", "model.hidden=[16]"),
            "schedule.checkpoint_every=5",
        ]
    )
    made = RunStore(tmp_path_factory.mktemp("kept")).create(spec)
    with made.lock():
        assert loop.train(made).state == "done"
    return made


def test_first_last_and_each_keep_every_th_checkpoint_stay(run: Run) -> None:
    assert [snapshot.step for snapshot in snapshots.snapshots(run)] == [0, 8, 16, 24, 28]
    assert all(snapshot.embeddings is None for snapshot in snapshots.snapshots(run))
    for step, path in run_directory.kept_checkpoints(run.path).items():
        assert path.name == f"{step:08}.ckpt"
        assert checkpoint.read(path).facts["step"] == step
    assert (run.path / "kept" / "00000028.ckpt").samefile(run.path / "last.ckpt")  # a hard link, not a copy


def test_a_snapshot_has_the_weights_of_its_step_and_not_the_best_so_far(run: Run) -> None:
    found = scores(run.metrics()[0])
    assert read(snapshots.embed(run, 0)).map_at_r == found["untrained"]["map_at_r"]
    saved = checkpoint.read(run_directory.kept_checkpoints(run.path)[8])
    assert saved.facts["best_step"] == 0  # no validation since step 0
    best = starts.load_for_evaluation(run, saved)
    current = evaluation.embed(best.model, best.data, "test", best.device)
    use_best(best)
    assert not np.allclose(evaluation.embed(best.model, best.data, "test", best.device), current)
    with np.load(snapshots.embed(run, saved.facts["step"]), allow_pickle=False) as arrays:
        assert np.array_equal(arrays["embeddings"], current)
        assert np.array_equal(arrays["indices"], best.data.splits["test"])
        assert np.array_equal(arrays["labels"], best.data.labels[best.data.splits["test"]])


def test_all_that_lack_embeddings_get_them_once(run: Run) -> None:
    snapshots.embed(run, 8)
    done = sum(snapshot.embeddings is not None for snapshot in snapshots.snapshots(run))
    assert snapshots.embed_all(run) == 5 - done
    assert snapshots.embed_all(run) == 0
    assert snapshots.snapshots(run)[-1].embeddings == run.path / "kept" / "00000028.npz"


def test_a_step_that_was_not_kept_is_refused_with_those_that_were(run: Run) -> None:
    with pytest.raises(RunError, match="no kept checkpoint of step 7; kept: 0, 8, 16, 24, 28"):
        snapshots.embed(run, 7)


def test_keeping_changes_nothing_else_and_is_off_by_default(run: Run, tmp_path: Path) -> None:
    plain = RunStore(tmp_path).create(run.spec.with_overrides(["schedule.keep_every=0"]))
    with plain.lock():
        loop.train(plain)
    assert (plain.path / "metrics.jsonl").read_bytes() == (run.path / "metrics.jsonl").read_bytes()
    assert snapshots.snapshots(plain) == []
    assert RunSpec().schedule.keep_every == 0
    assert series(run.metrics()[0], "step", "loss")[0] == list(range(1, 29))
