"""Local neighbourhoods after balanced batches, with embeddings kept close to the pretrained network; both stages
resume.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dmlcore.metrics import nearest, rerank
from dmlcore.monitoring.comparability import lint_spec
from dmlcore.spec import RunSpec, SpecError
from dmlcore.storage.runs import RunStore
from dmlcore.storage.runs import scores as scores_of
from dmlcore.training import loop
from tests.training.methods.two_stages import CPU, SPEC, make_state
from tests.training.resumed import same_to_the_bit, trained

FROZEN = ["model.freeze=backbone", "data.augment=false"]


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
        assert told == any("never start" in issue.sentence for issue in issues)


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
