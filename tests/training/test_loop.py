from pathlib import Path

import numpy as np
import pytest

from dmlcore import presets
from dmlcore.data import Dataset
from dmlcore.spec import RunSpec
from dmlcore.storage import checkpoint
from dmlcore.storage.runs import Run, RunStore, scores, series
from dmlcore.training import loop
from dmlcore.training.build import load_data
from tests.training import resumed

SPECS = sorted(presets.SPECS.glob("*.toml"))
BASE = RunSpec().with_overrides(
    ["schedule.steps=30", "schedule.validate_every=10", "schedule.checkpoint_every=20", "model.hidden=[16]"]
)


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path)


def trained(store: RunStore, *overrides: str, dataset: Dataset | None = None) -> Run:
    run = store.create(BASE.with_overrides(overrides))
    with run.lock():
        loop.train(run, dataset=dataset)
    return run


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return the run of BASE; tests only read it."""
    return trained(RunStore(tmp_path_factory.mktemp("plain")))


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_shipped_specs_are_valid(path: Path) -> None:
    spec = RunSpec.from_toml(path.read_text())
    assert spec.name


def test_default_digits_rise_by_forty_points(store: RunStore) -> None:
    spec = RunSpec.from_toml(next(path for path in SPECS if path.stem == "digits").read_text())
    found = resumed.trained(store, spec).scores()
    assert found["trained"]["map_at_r"] - found["untrained"]["map_at_r"] > 0.40


def test_metrics_hold_a_row_per_step_and_no_clock(plain: Run, store: RunStore) -> None:
    second = trained(store)
    assert (plain.path / "metrics.jsonl").read_bytes() == (second.path / "metrics.jsonl").read_bytes()
    rows = plain.metrics()[0]
    assert series(rows, "step", "loss")[0] == list(range(1, 31))
    assert series(rows, "validation", "map_at_r")[0] == [0, 10, 20, 30]
    assert all(0 <= share <= 1 for name in ("nonzero", "active") for share in series(rows, "step", name)[1])


def test_test_scores_at_validations_are_measured_and_select_nothing(plain: Run, store: RunStore) -> None:
    run = trained(store, "schedule.validate_test=true", "schedule.monitor=recall_at_1")
    rows = run.metrics()[0]
    steps, measured = series(rows, "validation", "test_map_at_r")
    tested = scores(rows)["trained"]
    assert steps == [0, 10, 20, 30]
    assert measured[steps.index(tested["step"])] == tested["map_at_r"]
    without = [{k: v for k, v in row.items() if k != "test_map_at_r"} for row in rows]
    assert without == trained(store, "schedule.monitor=recall_at_1").metrics()[0]


def test_another_seed_is_another_training(plain: Run, store: RunStore) -> None:
    a, b = (series(run.metrics()[0], "step", "loss")[1] for run in (plain, trained(store, "seed=1")))
    assert a != b


def test_embeddings_belong_to_the_best_weights(plain: Run) -> None:
    row = scores(plain.metrics()[0])["trained"]
    path = plain.embeddings()
    assert path.name == f"{row['weights']}.npz"
    data = load_data(plain.spec)
    with np.load(path, allow_pickle=False) as arrays:
        assert np.array_equal(arrays["indices"], data.splits["test"])
        assert np.array_equal(arrays["labels"], data.labels[data.splits["test"]])
        assert arrays["embeddings"].dtype == np.float32
        assert np.allclose(np.linalg.norm(arrays["embeddings"], axis=1), 1, atol=1e-5)
    steps, values = series(plain.metrics()[0], "validation", "map_at_r")
    assert row["step"] == steps[int(np.argmax(values))]


def test_patience_stops_and_the_best_is_tested(store: RunStore) -> None:
    run = trained(store, "schedule.steps=2000", "schedule.patience=2", "optimiser.learning_rate=5.0")
    rows = run.metrics()[0]
    steps, values = series(rows, "validation", "map_at_r")
    best = int(np.argmax(values))
    assert run.status() == "done"
    assert len(steps) == best + 3
    assert run.state().step == steps[-1] < 2000
    assert scores(rows)["trained"]["step"] == steps[best]


def test_without_validation_the_last_weights_are_tested(store: RunStore) -> None:
    run = trained(store, "data.validation=none", "schedule.steps=25")
    assert series(run.metrics()[0], "validation", "map_at_r") == ([], [])
    assert scores(run.metrics()[0])["trained"]["step"] == 25
    saved = checkpoint.load(run.path)
    assert checkpoint.select_prefix(saved.tensors, "best") == {}


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["model.name=resnet20"], "resnet20 needs images"),
        (["device=cuda"], "no usable CUDA device"),
    ],
)
def test_what_cannot_be_trained_fails_with_a_reason(overrides: list[str], message: str, store: RunStore) -> None:
    if "device=cuda" in overrides and loop.torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    run = trained(store, *overrides)
    assert run.status() == "failed"
    assert message in run.state().message
    assert "unexpected" not in run.state().message


def test_evaluate_needs_a_checkpoint(store: RunStore) -> None:
    run = store.create(BASE)
    with run.lock(), pytest.raises(loop.TrainingError, match="no checkpoint yet"):
        loop.evaluate(run)


def test_evaluate_of_a_stopped_run_is_forgotten_by_its_resume(plain: Run, store: RunStore) -> None:
    stopped = store.create(BASE)
    with stopped.lock():
        loop.train(stopped, stop=lambda: True)
        assert stopped.state().step == 1
        loop.evaluate(stopped)
        assert scores(stopped.metrics()[0])["trained"]["map_at_r"] > 0
        stopped.update(state="queued")
        loop.train(stopped)
    assert (stopped.path / "metrics.jsonl").read_bytes() == (plain.path / "metrics.jsonl").read_bytes()


def test_the_best_weights_are_of_the_pooling_that_was_asked_for(tmp_path) -> None:
    spec = RunSpec().with_overrides(
        [
            *("data.name=tokens", "model.name=tokens", "model.embedding_dim=2", "loss.name=contrastive"),
            *("batch.classes=16", "batch.samples=4", "pooling.name=gsp", "pooling.prototypes=4"),
            *("pooling.memory=64", "pooling.warmup=1", "schedule.steps=4", "schedule.validate_every=1"),
        ]
    )
    run = resumed.trained(RunStore(tmp_path), spec)
    facts = checkpoint.load(run.path).facts
    assert facts["best_step"] in (2, 3, 4)  # the first batch is skipped, the second fills the memory
    assert [row["step"] for row in run.metrics()[0] if row["kind"] == "validation"] == [0, 1, 2, 3, 4]


def test_a_kill_before_it_says_done_leaves_a_run_that_a_resume_completes(store: RunStore) -> None:
    class Killed(BaseException):
        pass

    def killed(run: Run) -> None:
        assert run.embeddings() is not None
        raise Killed

    run, seen = store.create(BASE.with_overrides(["data.name=toy"])), []
    with run.lock(), pytest.raises(Killed):
        loop.train(run, before_done=killed)
    assert run.status() == "lost"
    before = run.metrics()
    with run.lock():
        assert loop.train(run, before_done=lambda run: seen.append(run.status())).state == "done"
    assert seen == ["running"]
    assert run.metrics() == before
