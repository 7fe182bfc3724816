from pathlib import Path

import numpy as np
import pytest
import torch

from dmlcore.spec import RunSpec, SpecError
from dmlcore.spec.sections import ForkSpec
from dmlcore.storage import checkpoint, run_directory
from dmlcore.storage.runs import Run, RunStore, series
from dmlcore.training import loop
from dmlcore.training.build import load_data
from dmlcore.training.errors import TrainingError
from dmlcore.training.forks import training_split, transfer
from tests.training.resumed import trained

BASE = RunSpec().with_overrides(
    [
        *("schedule.steps=24", "schedule.validate_every=6", "schedule.checkpoint_every=5", "schedule.keep_every=10"),
        *("model.hidden=[16]", "schedule.measure_every=5"),
    ]
)
STRENGTHS = {
    "proxies, plateau, adamw, best on the way": [
        *("loss.name=proxy_nca", "loss.learning_rate=0.1", "optimiser.name=adamw", "optimiser.learning_rate=0.5"),
        *("schedule.plateau=1", "schedule.plateau_factor=0.3", "optimiser.decay_batch_norm=false"),
        *("optimiser.weight_decay=0.01", "optimiser.head_factor=10"),
    ],
    "memory, cosine, sgd, random miner": [
        *("loss.name=contrastive", "loss.memory=3", "loss.memory_start=2", "optimiser.name=sgd"),
        *("schedule.decay=cosine", "schedule.warm_up=4", "data.validation=none"),
    ],
    "mined batches, rmsprop": [
        "batch.sampler=mined",
        "miner.name=semi_hard",
        "batch.refresh=8",
        "optimiser.name=rmsprop",
    ],
}


def forked(parent: Run, step: int, *overrides: str) -> RunSpec:
    return parent.spec.with_overrides([f"fork.run={parent.id}", f"fork.step={step}", *overrides])


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return trained(RunStore(tmp_path_factory.mktemp("runs")), BASE)


@pytest.fixture
def store(parent: Run) -> RunStore:
    return RunStore(parent.path.parent)


def rows_after(run: Run, step: int) -> list[dict]:
    return [row for row in run.metrics()[0] if row["step"] > step or row.get("of") == "trained"]


def tensors(path: Path) -> dict[str, torch.Tensor]:
    return checkpoint.read(path).tensors


@pytest.mark.parametrize("kind", STRENGTHS)
def test_a_fork_with_nothing_changed_is_its_parent_bit_for_bit(kind: str, tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    parent = trained(store, BASE.with_overrides(STRENGTHS[kind]))
    fork = trained(store, forked(parent, 10))
    assert rows_after(fork, 10) == rows_after(parent, 10)
    assert len(rows_after(fork, 10)) > 14
    mine, theirs = tensors(fork.path / "last.ckpt"), tensors(parent.path / "last.ckpt")
    assert mine.keys() == theirs.keys()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)
    assert fork.embeddings().name == parent.embeddings().name
    assert fork.embeddings().read_bytes() == parent.embeddings().read_bytes()


def test_the_clock_goes_on_and_the_curve_begins_at_the_fork(parent: Run, store: RunStore) -> None:
    fork = trained(store, forked(parent, 10, "loss.name=contrastive", "schedule.steps=30"))
    rows = fork.metrics()[0]
    assert series(rows, "step", "loss")[0] == list(range(11, 31))
    assert series(rows, "validation", "map_at_r")[0] == [10, 12, 18, 24, 30]
    first = {row["of"]: row for row in rows if row["kind"] == "scores"}
    untrained = next(row for row in parent.metrics()[0] if row.get("of") == "untrained")
    assert first["untrained"] == untrained
    told = next(row for row in rows if row["kind"] == "fork")
    assert (told["run"], told["step"]) == (parent.id, 10)
    assert "network" in told["carried"]
    assert "best weights, tracked from this step on" in told["anew"]
    assert list(run_directory.kept_checkpoints(fork.path)) == [10, 20, 30]


def test_the_weights_at_the_fork_are_the_parents_and_the_new_proxies_begin_anew(parent: Run, store: RunStore) -> None:
    fork = trained(store, forked(parent, 20, "loss.name=proxy_nca"))
    mine, theirs = tensors(fork.path / "kept/00000020.ckpt"), tensors(parent.path / "kept/00000020.ckpt")
    weights = [name for name in theirs if name.startswith("model.")]
    assert weights
    assert all(torch.equal(mine[name], theirs[name]) for name in weights)
    moments = {name: tensor for name, tensor in theirs.items() if name.startswith("optimiser.")}
    assert moments
    assert all(torch.equal(mine[name], moments[name]) for name in moments)
    told = next(row for row in fork.metrics()[0] if row["kind"] == "fork")
    assert told["anew"][0] == "proxies of the loss (10 x 64)"


def test_a_changed_fork_goes_another_way_and_proxies_of_the_same_loss_go_on(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    parent = trained(store, BASE.with_overrides(["loss.name=margin", "loss.memory=0"]))
    loss = [name for name in tensors(parent.path / "last.ckpt") if name.startswith("loss.")]
    assert loss, "this loss must have a parameter"
    other = trained(store, forked(parent, 10, "optimiser.learning_rate=0.01"))
    assert rows_after(other, 10) != rows_after(parent, 10)
    start, theirs = tensors(other.path / "kept/00000010.ckpt"), tensors(parent.path / "kept/00000010.ckpt")
    assert all(torch.equal(start[name], theirs[name]) for name in loss)
    moved = trained(store, forked(parent, 10, "loss.beta=0.9"))  # initial value of the threshold
    start = tensors(moved.path / "kept/00000010.ckpt")
    assert any(not torch.equal(start[name], theirs[name]) for name in loss)
    told = next(row for row in moved.metrics()[0] if row["kind"] == "fork")
    assert told["anew"][0].startswith("beta of the loss")


def test_a_fork_needs_its_parent_no_more_and_goes_on_after_a_stop(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    parent = trained(store, BASE)
    spec = forked(parent, 20, "loss.name=facenet", "fork.leave_out=[9]", "schedule.steps=32")
    whole, stopped = trained(store, spec), store.create(spec)
    parent.delete()
    with stopped.lock():
        steps = iter(range(100))
        assert loop.train(stopped, stop=lambda: next(steps) == 2).step == 23
        assert not (stopped.path / run_directory.ORIGIN).exists()
        stopped.update(state="queued")
        assert loop.train(stopped).state == "done"
    assert (stopped.path / "metrics.jsonl").read_bytes() == (whole.path / "metrics.jsonl").read_bytes()
    assert (stopped.path / "last.ckpt").read_bytes() == (whole.path / "last.ckpt").read_bytes()


def test_classes_are_left_out_and_samples_relabelled_in_the_training_split_alone(parent: Run) -> None:
    data = load_data(parent.spec)
    split = data.splits["train"]
    sample = int(split[data.labels[split] == 3][0])
    found = training_split.edit_split(data, ForkSpec(run="x", leave_out=(9, 0), relabel=((sample, 7),)))
    left = set(found.labels[found.splits["train"]].tolist())
    assert left == set(range(1, 9))
    assert found.labels[sample] == 7
    assert (found.labels != data.labels).sum() == 1
    for split in ("validation", "test"):
        assert np.array_equal(found.splits[split], data.splits[split])
        assert {0, 9} <= set(found.labels[found.splits[split]].tolist())
    assert training_split.edit_split(data, ForkSpec()) is data


def test_samples_are_left_out_of_the_training_split_alone(parent: Run) -> None:
    data = load_data(parent.spec)
    train = data.splits["train"]
    without = training_split.edit_split(data, ForkSpec(run="x", leave_out_samples=tuple(train[[5, 2]].tolist())))
    assert np.array_equal(without.splits["train"], np.delete(train, [2, 5]))
    assert np.array_equal(without.labels, data.labels)
    for split in ("validation", "test"):
        assert np.array_equal(without.splits[split], data.splits[split])
    tested = int(data.splits["test"][0])
    with pytest.raises(TrainingError, match=f"fork.leave_out_samples: only samples of the training.*not {tested}$"):
        training_split.edit_split(data, ForkSpec(run="x", leave_out_samples=(tested,)))


@pytest.mark.parametrize(
    ("fork", "message"),
    [
        (ForkSpec(run="x", leave_out=(12,)), "leave_out: 12 is not a class of the training split"),
        (ForkSpec(run="x", leave_out=tuple(range(9))), "at least two classes must remain"),
        (ForkSpec(run="x", relabel=((10**6, 1),)), "only samples of the training split"),
    ],
)
def test_what_the_training_split_has_not_is_refused(fork: ForkSpec, message: str, parent: Run) -> None:
    with pytest.raises(TrainingError, match=message):
        training_split.edit_split(load_data(parent.spec), fork)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["fork.run=nobody"], "there is no run 'nobody'"),
        (["fork.run=../x"], "is not a valid name"),
        (["fork.run=", "fork.step=0", "fork.leave_out=[1]"], "needs fork.run, the run to fork"),
        (["fork.run=", "fork.step=0", "fork.leave_out_samples=[1]"], "needs fork.run, the run to fork"),
        (["fork.relabel=[[4, 1], [4, 2]]"], "only one class"),
    ],
)
def test_a_fork_of_nothing_is_refused_and_leaves_nothing(
    overrides: list[str], message: str, parent: Run, store: RunStore
) -> None:
    before = sorted(path.name for path in store.root.iterdir())
    with pytest.raises(SpecError, match=message):
        store.create(forked(parent, 10, *overrides))
    assert sorted(path.name for path in store.root.iterdir()) == before


def test_another_network_cannot_be_forked_into(parent: Run, store: RunStore) -> None:
    run = store.create(forked(parent, 10, "model.hidden=[32]", "data.image_size=40"))
    with run.lock():
        state = loop.train(run)
    assert state.state == "failed"
    assert "fork: data.image_size, model.hidden cannot be changed" in state.message


def test_a_damaged_origin_is_refused_with_its_name(parent: Run, store: RunStore) -> None:
    run = store.create(forked(parent, 10))
    path = run.path / run_directory.ORIGIN
    contents = path.read_bytes()
    path.unlink()  # a hard link to the file of the parent
    path.write_bytes(contents[:-1] + bytes([contents[-1] ^ 1]))
    with run.lock():
        assert loop.train(run).state == "failed"
    assert "origin.ckpt is damaged" in run.state().message
    assert not run.metrics()[0]


def test_which_changes_let_the_best_weights_of_the_parent_stay(parent: Run) -> None:
    spec = parent.spec
    assert transfer.same_question(spec, forked(parent, 10, "schedule.steps=99", "name=longer"))
    for change in ("loss.m=0.2", "schedule.monitor=recall_at_1", "fork.leave_out=[1]", "batch.classes=4"):
        assert not transfer.same_question(spec, forked(parent, 10, change))
