from pathlib import Path

import pytest

from dmlcore.spec import RunSpec, SpecError
from dmlcore.storage.runs import Run, RunStore, series
from dmlcore.training.build import load_data
from dmlcore.training.errors import TrainingError
from dmlcore.training.forks import fork_spec
from tests.started import run_python
from tests.training.resumed import trained


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Run:
    spec = RunSpec().with_overrides(
        ["schedule.steps=9", "schedule.keep_every=4", "schedule.validate_every=9", "model.hidden=[16]"]
    )
    return trained(RunStore(tmp_path_factory.mktemp("runs")), spec)


def test_a_spec_names_its_origin_and_keeps_what_is_not_changed(parent: Run) -> None:
    spec = fork_spec.create(parent, 4, ["loss.name=contrastive"], leave_out=[3, 1], without=[41, 7], relabel={40: 2})
    assert spec.fork.leave_out_samples == (7, 41)
    assert (spec.fork.run, spec.fork.step) == (parent.id, 4)
    assert (spec.fork.leave_out, spec.fork.relabel) == ((1, 3), ((40, 2),))
    assert spec.loss.name == "contrastive"
    assert spec.name == "digits from 4"
    assert spec.optimiser == parent.spec.optimiser
    assert RunSpec.from_json(spec.to_json()) == RunSpec.from_toml(spec.to_toml()) == spec
    assert fork_spec.fork_steps(parent) == [0, 4, 8, 9]


@pytest.mark.parametrize(
    ("step", "changes", "message"),
    [
        (5, [], "no checkpoint of step 5; available steps: 0, 4, 8, 9"),
        (9, [], "must be greater than 9, the step at which the fork starts, got 9"),
        (4, ["model.embedding_dim=32"], "model.embedding_dim: a fork continues with the weights"),
        (4, ["seed=1"], "seed: a fork"),
        (4, ["loss.nam=x", "schedule.stepps=3"], "did you mean steps"),
    ],
)
def test_what_cannot_be_forked_is_said(step: int, changes: list[str], message: str, parent: Run) -> None:
    with pytest.raises(SpecError, match=message):
        fork_spec.create(parent, step, changes)


def test_classes_by_name_or_number_and_batches_that_no_longer_fit(parent: Run) -> None:
    data = load_data(parent.spec)
    named = type(data)(data.name, data.inputs, data.labels, ("7", "a=b", "x", "x", *"efghij"), data.splits, None, ())
    assert fork_spec.class_of(named, "7") == 0  # a name before a number
    assert fork_spec.class_of(named, "3") == 3
    assert fork_spec.parse_relabelling(named, ["12=a=b"]) == {12: 1}
    for word, message in (
        ("x", "name of several"),
        ("42", "no class"),
        ("²", "no class"),
        ("a=c", "did you mean 'a=b'"),
    ):
        with pytest.raises(SpecError, match=message):
            fork_spec.class_of(named, word)
    for word in ("12", "-1=3", "z=3"):
        with pytest.raises(SpecError, match="expected SAMPLE=CLASS"):
            fork_spec.parse_relabelling(named, [word])
    assert fork_spec.parse_samples("12, 7 50,12") == (7, 12, 50)
    assert fork_spec.parse_samples(" ") == ()
    for word in ("12;7", "-3", "²", "1" * 13):
        with pytest.raises(SpecError, match="expected numbers of samples"):
            fork_spec.parse_samples(word)
    with pytest.raises(SpecError, match="at most 10,000 samples can be left out by number, got 10,001"):
        fork_spec.create(parent, 4, without=range(10_001))
    with pytest.raises(TrainingError, match="batches hold 8 classes, but 7 are left"):
        fork_spec.check(fork_spec.create(parent, 4, leave_out=[0, 1, 2]), data)


def test_the_command_line_forks_and_a_fork_of_a_fork_keeps_its_training_split(parent: Run) -> None:
    store = RunStore(parent.path.parent)
    words = ["loss.name=contrastive", "schedule.keep_every=2", "--step", "4", "--more", "3"]
    words += ["--leave-out", "9", "--without", "2,3"]
    said = run_python("-m", "dmlcore", "fork", parent.id, *words, "--runs", str(store.root))
    assert said.returncode == 0, said.stderr
    made = store.open(said.stdout.splitlines()[0])
    assert series(made.metrics()[0], "step", "loss")[0] == [5, 6, 7]
    assert fork_spec.parent_of(made).id == parent.id
    assert [run.id for run in fork_spec.children(parent)] == [made.id]
    again = fork_spec.create(made, 6, ["schedule.steps=8"], leave_out=[2], without=[7], relabel={})
    assert again.fork.leave_out_samples == (2, 3, 7)
    assert again.fork.run == made.id
    assert again.fork.leave_out == (2, 9)


def test_a_parent_that_is_gone_is_no_parent(parent: Run, tmp_path: Path) -> None:
    alone = RunStore(tmp_path).create(RunSpec())
    assert fork_spec.parent_of(alone) is None
    assert fork_spec.children(alone) == []
