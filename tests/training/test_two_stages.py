"""Local neighbourhoods after balanced batches, with embeddings kept close to the pretrained network; both stages
resume.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from dmlcore.metrics import nearest, rerank
from dmlcore.monitoring.comparability import lint_spec
from dmlcore.spec import RunSpec, SpecError
from dmlcore.storage import checkpoint
from dmlcore.storage.run_directory import kept_path
from dmlcore.storage.runs import RunStore
from dmlcore.storage.runs import scores as scores_of
from dmlcore.training import build, loop, reference, stored_features
from dmlcore.training.forks import fork_spec
from dmlcore.training.state import TrainingState
from tests.training.resumed import same_to_the_bit, trained

CPU = torch.device("cpu")
SPEC = RunSpec(device="cpu").with_overrides(
    [
        *("data.name=digits_pictures", "model.name=conv4_32", "model.embedding_dim=8", "model.normalize=false"),
        *(
            "model.dropout=0.2",
            "model.start=imagenet",
            "loss.name=tuplet",
            "loss.norm_weight=0.02",
            "loss.start_weight=0.3",
        ),
        *("batch.classes=4", "batch.samples=2", "batch.sampler=neighbourhood", "batch.neighbours=3"),
        *("batch.balanced_steps=3", "batch.refresh=0", "optimiser.learning_rate=0.01"),
        *("schedule.steps=7", "schedule.validate_every=3", "schedule.checkpoint_every=100", "schedule.measure_every=1"),
        *("schedule.keep_every=5",),
    ]
)
FROZEN = ["model.freeze=backbone", "data.augment=false"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DML_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(stored_features, "CHUNK", 16)


@pytest.fixture(scope="module")
def digits() -> Any:
    """Return images of digits, 16 pixels per side, a few of each split."""
    whole = build.load_data(SPEC)
    splits = {name: rows[::12] for name, rows in whole.splits.items()}
    return dataclasses.replace(whole, inputs=np.ascontiguousarray(whole.inputs[:, :, ::2, ::2]), splits=splits)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory, digits: Any) -> str:
    """Write a pretrained backbone that differs from the initial one of the run's seed."""
    network = build.build(SPEC.with_overrides(["seed=7"]), digits, CPU, start=False).model
    path = tmp_path_factory.mktemp("weights") / "conv4_32.safetensors"
    save_file({name: tensor.contiguous() for name, tensor in network.backbone.state_dict().items()}, path)
    return str(path)


def make_state(digits: Any, weights: str, *overrides: str) -> TrainingState:
    state = build.build(SPEC.with_overrides([f"model.start={weights}", *overrides]), digits, CPU)
    state.model.train()
    return state


@pytest.mark.parametrize("frozen", [False, True], ids=["backbone learns", "frozen backbone"])
def test_a_resume_repeats_both_stages_bit_for_bit(frozen: bool, tmp_path: Path, digits: Any, weights: str) -> None:
    """The run is stopped in the first stage, at its end, and twice in the second, whose table is computed once."""
    spec = SPEC.with_overrides([f"model.start={weights}", *(FROZEN if frozen else [])])
    store = RunStore(tmp_path / "runs")
    whole = trained(store, spec, dataset=digits)
    stopped = trained(store, spec, stops=(2, 3, 4, 6), dataset=digits)
    one, _ = same_to_the_bit(whole, stopped)
    assert {name.partition(".")[0] for name in one.tensors} >= {"table", "reference", "fixed"}
    assert frozen != any(name.startswith("reference.backbone") for name in one.tensors)


def test_the_second_stage_goes_on_with_layer_moments_and_one_table(digits: Any, weights: str) -> None:
    state = make_state(digits, weights, "model.dropout=0", "loss.start_weight=0")
    drawn, tables = [], []
    plain = make_state(digits, weights, "model.dropout=0", "loss.start_weight=0", "batch.sampler=balanced")
    for number in range(1, 8):
        if number == 4:  # the network after the first stage
            train = digits.splits["train"]
            expected = loop.embed(state.model, state.data, train, CPU)
        before = {name: tensor.clone() for name, tensor in state.model.state_dict().items()}
        loop.step(state, number)
        loop.step(plain, number)
        same = all(torch.equal(t, plain.model.state_dict()[n]) for n, t in state.model.state_dict().items())
        assert same == (number <= 3)
        assert not torch.equal(before["head.linear.weight"], state.model.state_dict()["head.linear.weight"])
        tables.append(state.batches.table)
        drawn.append(state.batches.sampler_of(number))
    assert [table is None for table in tables] == [True] * 3 + [False] * 4
    assert all(table is tables[3] for table in tables[4:])
    np.testing.assert_array_equal(tables[3], expected)
    assert [type(s).__name__ for s in drawn] == ["BalancedSampler"] * 3 + ["NeighbourhoodSampler"] * 4
    steps = {int(moment["step"]) for moment in state.optimiser.state.values()}
    assert steps == {7}  # the step counter of Adam continues


def test_embedding_anew_counts_from_where_the_neighbourhoods_begin(digits: Any, weights: str) -> None:
    state, made_at, table = make_state(digits, weights, "batch.refresh=2"), [], None
    for number in range(1, 8):
        loop.step(state, number)
        if state.batches.table is not table:
            made_at.append(number)
        table = state.batches.table
    assert made_at == [4, 6]


@pytest.mark.parametrize("loss", ["tuplet", "contrastive", "proxy_nca", "facenet"])
def test_any_loss_is_held_to_the_pretrained_network(loss: str, digits: Any, weights: str) -> None:
    """The gradient is that of the loss and of J_pre, whose reference embeddings are constant, without dropout."""
    overrides = [f"loss.name={loss}", "model.dropout=0"]
    held, free = (make_state(digits, weights, *overrides, f"loss.start_weight={weight}") for weight in (0.3, 0))
    for number in (1, 2):
        loop.step(held, number)
    free.model.load_state_dict(held.model.state_dict())
    free.loss.load_state_dict(held.loss.state_dict())
    inputs = held.batches.make(3, lambda _: None).inputs
    pull = 0.3 * reference.distance(held.model(inputs), reference.embed(held.reference, inputs))
    pulls = torch.autograd.grad(pull, list(held.model.parameters()))
    free.model.load_state_dict(held.model.state_dict())  # batch norm has seen another batch
    loss_held, loss_free = loop.step(held, 3), loop.step(free, 3)
    assert loss_held.item() == pytest.approx(loss_free.item() + pull.item(), rel=1e-4)
    assert held.reference_distance.item() == pytest.approx(pull.item() / 0.3, rel=1e-4)
    assert pull.item() > 0
    for pulled, mine, without in zip(pulls, held.model.parameters(), free.model.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, without.grad + pulled, rtol=1e-3, atol=1e-5)


def test_the_start_stays_what_it_was(digits: Any, weights: str) -> None:
    state = make_state(digits, weights)
    inputs = state.batches.make(1, lambda _: None).inputs
    state.model.eval()
    before = state.model(inputs).detach().clone()
    state.model.train()
    for number in range(1, 4):
        loop.step(state, number)
    assert torch.equal(reference.embed(state.reference, inputs), before)
    assert not torch.equal(state.model(inputs), before)
    assert not any(p.requires_grad for p in state.reference.parameters())


def test_a_fork_is_held_to_what_its_parent_was_or_else_to_where_it_begins(
    tmp_path: Path, digits: Any, weights: str
) -> None:
    store = RunStore(tmp_path / "runs")
    held = trained(store, SPEC.with_overrides([f"model.start={weights}"]), dataset=digits)
    loose = trained(store, SPEC.with_overrides([f"model.start={weights}", "loss.start_weight=0"]), dataset=digits)
    for parent, of, anew in ((held, "reference", False), (loose, "model", True)):
        fork = trained(store, fork_spec.create(parent, 5, ["loss.start_weight=0.7"]), dataset=digits)
        (row,) = (row for row in fork.metrics()[0] if row["kind"] == "fork")
        assert anew == any("reference network" in words for words in row["anew"])
        expected = checkpoint.select_prefix(checkpoint.read(kept_path(parent.path, 5)).tensors, of)
        mine = checkpoint.select_prefix(checkpoint.load(fork.path).tensors, "reference")
        assert mine.keys() == expected.keys()
        assert all(torch.equal(mine[name], expected[name]) for name in mine)


def test_dropout_is_of_training_alone(digits: Any, weights: str) -> None:
    state = make_state(digits, weights, "model.dropout=0.5", "loss.start_weight=0")
    features = torch.ones(64, state.model.backbone.out_channels, 1, 1)
    torch.manual_seed(0)
    one, two = state.model.head(features), state.model.head(features)
    assert not torch.equal(one, two)
    state.model.eval()
    assert torch.equal(state.model.head(features), state.model.head(features))
    torch.testing.assert_close(one.mean(0), state.model.head(features)[0], rtol=0.5, atol=0.5)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["model.start="], "loss.start_weight: embeddings are pulled"),
        (["data.name=tokens", "model.name=tokens"], "model.dropout: bags of tokens have no embedding layer"),
    ],
)
def test_what_does_not_go_together_is_refused(overrides: list[str], message: str) -> None:
    given = SPEC.model_dump()
    for key, _, value in (line.partition("=") for line in overrides):
        section, name = key.split(".")
        given[section][name] = value or None
    with pytest.raises(SpecError, match=message):
        RunSpec.parse(given)


def test_a_second_stage_that_never_begins_is_told() -> None:
    for steps, told in ((7, True), (6, False)):
        issues = lint_spec(SPEC.with_overrides([f"batch.balanced_steps={steps}"]))
        assert told == any("batch.balanced_steps" in issue.keys and "never start" in issue.sentence for issue in issues)


def test_fixed_neighbourhoods_are_those_of_the_network_after_the_first_stage(
    tmp_path: Path, digits: Any, weights: str
) -> None:
    spec = SPEC.with_overrides([f"model.start={weights}", "data.validation=none", "ks=[1, 2, 4]"])
    store = RunStore(tmp_path / "runs")
    run = trained(store, spec, dataset=digits)
    (row,) = (row for row in run.metrics()[0] if row["kind"] == "fixed_neighbours")
    first = trained(store, spec.with_overrides(["schedule.steps=3"]), dataset=digits)
    before, after = (np.load(each.embeddings()) for each in (first, run))
    assert not [row for row in first.metrics()[0] if row["kind"] == "fixed_neighbours"]
    listed = nearest(before["embeddings"], k=3)[1]
    scores = rerank(after["embeddings"], after["labels"], listed, (1, 2))
    assert row["neighbours"] == 3
    for name, values in (("", scores.recall_at), ("before_", scores.before_at), ("chance_", scores.chance_at)):
        assert {k: row[f"{name}recall_at_{k}"] for k in (1, 2)} == pytest.approx(values)
    assert row["before_recall_at_1"] == pytest.approx(scores_of(first.metrics()[0])["trained"]["recall_at"]["1"])
    assert row["recall_at_1"] != row["before_recall_at_1"]
    assert "recall_at_4" not in row
