"""The influence of a sample is the difference between a step with and without it, for a small learning rate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dmlcore.inspection.influence import of_step
from dmlcore.spec import RunSpec
from dmlcore.training import loop
from dmlcore.training.build import build, load_data
from dmlcore.training.errors import TrainingError
from dmlcore.training.state import TrainingState
from tests.members import in_one_case

LINEAR = ["model.hidden=[]", "optimiser.name=sgd", "optimiser.momentum=0.0", "batch.classes=4", "batch.samples=4"]
READ = load_data(RunSpec())
DATA = replace(READ, inputs=READ.inputs.astype(np.float64))
TEST = DATA.splits["test"]


def make_state(*overrides: str) -> TrainingState:
    """A linear head in float64, so that the differences of small steps are visible."""
    state = build(RunSpec().with_overrides([*LINEAR, *overrides]), DATA, torch.device("cpu"))
    state.model.double()
    state.loss.double()
    return state


def cases(count: int) -> Tensor:
    """Return triplets of test samples: queries, then samples of their classes, then samples of other classes."""
    labels = DATA.labels[TEST]
    query = np.arange(count)
    right = np.array([np.flatnonzero((labels == labels[q]) & (np.arange(len(labels)) != q))[3] for q in query])
    wrong = np.array([np.flatnonzero(labels != labels[q])[5] for q in query])
    return torch.from_numpy(DATA.inputs[TEST[np.concatenate([query, right, wrong])]])


def margins(model: nn.Module, inputs: Tensor) -> np.ndarray:
    with torch.no_grad():
        query, right, wrong = model(inputs).chunk(3)
    return ((query - wrong).norm(dim=1) - (query - right).norm(dim=1)).numpy()


@pytest.mark.parametrize(
    "overrides",
    [
        ["loss.name=ranking"],
        ["loss.name=multi_similarity", "model.normalize=false"],
        ["loss.name=proxy_nca", "model.hidden=[8]"],
        ["batch.sampler=mined", "miner.name=semi_hard"],
        ["loss.name=contrastive", "miner.name=multi_similarity"],
        ["loss.name=wel"],
    ],
    ids=" ".join,
)
def test_it_is_the_difference_of_one_step_with_and_without_a_sample(overrides: list[str]) -> None:
    small = [*overrides, "optimiser.learning_rate=1e-4"]
    inputs, told = cases(3), of_step.step(make_state(*small), 1, cases(3))
    largest = np.abs(told.influence).max()
    assert told.margins == pytest.approx(margins(make_state(*small).model, inputs))
    for column in (0, 5, len(told.samples) - 1):
        after = []
        for out in (None, told.samples[column]):
            state = make_state(*small)
            indices = state.batches.make(1, lambda rows, state=state: _embed(state, rows)).indices
            kept = torch.from_numpy(np.flatnonzero(indices != out))
            loop.step(state, 1, lambda *batch, state=state, kept=kept: _restricted(state, kept, *batch))
            after.append(margins(state.model, inputs))
        assert told.influence[:, column] == pytest.approx(after[0] - after[1], rel=5e-3, abs=1e-3 * largest)
    assert largest > 1e-7


def _embed(state: TrainingState, rows: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        return state.model(torch.from_numpy(DATA.inputs[rows])).float().numpy()


def _restricted(
    state: TrainingState,
    kept: Tensor,
    embeddings: Tensor,
    labels: Tensor,
    shares: Any,
    tuples: Any,
    random: Any,
    *_: Any,
) -> Tensor:
    """Recompute the loss on the kept rows, without the tuples that contain a removed row."""
    if tuples is not None:
        rows = kept.tolist()
        left = [each for each in zip(*(t.tolist() for t in tuples), strict=True) if set(each) <= set(rows)]
        tuples = tuple(torch.tensor([rows.index(row) for row in column]) for column in zip(*left, strict=True))
    return state.loss(embeddings[kept], labels[kept], shares, tuples, random)


@in_one_case(optimiser=["sgd", "adam", "adamw", "rmsprop"])
def test_a_first_step_moves_each_weight_by_its_factor(optimiser: str) -> None:
    state = make_state(f"optimiser.name={optimiser}", "loss.name=proxy_nca", "loss.learning_rate=0.1")
    before = [p.detach().clone() for p in (state.model.linear.weight, state.loss.metric.proxies)]
    of_step.step(state, 1, cases(1))
    factors = of_step._factors(state)
    for was, now, name in zip(
        before,
        (state.model.linear.weight, state.loss.metric.proxies),
        ("model.linear.weight", "loss.metric.proxies"),
        strict=True,
    ):
        moved = (now - was).detach()
        assert moved.abs().max() > 0
        torch.testing.assert_close(moved, -factors[name] * now.grad, rtol=1e-3, atol=1e-7)


def test_the_step_is_that_of_the_loop_and_momentum_and_clipping_count() -> None:
    given = ["optimiser.momentum=0.75", "optimiser.clip_norm=1e-3", "optimiser.learning_rate=0.1"]
    state, plain = make_state(*given), make_state(*given)
    for number in (1, 2):
        of_step.step(state, number, cases(2))
        loop.step(plain, number)
    for mine, other in zip(state.model.parameters(), plain.model.parameters(), strict=True):
        assert torch.equal(mine, other)
    factor = of_step._factors(state)["model.linear.weight"]
    assert factor == pytest.approx(0.1 / 0.25 * 1e-3 / float(state.norm), rel=1e-2)


def test_what_the_warm_up_does_not_train_is_moved_by_nothing() -> None:
    state = make_state("model.hidden=[8]", "schedule.warm_up=1")
    of_step.step(state, 1, cases(1))
    assert not any("hidden" in name for name in of_step._factors(state))
    of_step.step(state, 2, cases(1))
    assert any("hidden" in name for name in of_step._factors(state))


def test_the_tuples_of_a_miner_that_draws_stay_those_of_the_step() -> None:
    state = make_state("loss.name=contrastive", "miner.name=distance_weighted")
    batch = state.batches.make(1, lambda rows: _embed(state, rows))
    embeddings = state.model(batch.inputs)
    drawn = of_step._draw_tuples(state, 1, embeddings, batch.labels)
    kept = torch.tensor([row for row in range(len(batch.labels)) if row != 2])
    left = of_step._drop_tuples(drawn, kept, len(batch.labels))
    whole = {triplet for triplet in zip(*(t.tolist() for t in drawn), strict=True) if 2 not in triplet}
    assert {tuple(kept[list(triplet)].tolist()) for triplet in zip(*(t.tolist() for t in left), strict=True)} == whole
    assert of_step._draw_tuples(make_state("miner.name=semi_hard"), 1, embeddings, batch.labels) is None


def test_a_layer_without_forward_derivative_is_asked_by_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = of_step.step(make_state("model.hidden=[8]"), 1, cases(2))

    def unknown(*args: Any) -> None:
        raise NotImplementedError("Trying to use forward AD with a layer that does not support it")

    monkeypatch.setattr(of_step.forward_ad, "make_dual", unknown)
    near = of_step.step(make_state("model.hidden=[8]"), 1, cases(2))
    assert near.influence == pytest.approx(exact.influence, rel=1e-3, abs=1e-3 * np.abs(exact.influence).max())
    monkeypatch.setattr(of_step.forward_ad, "make_dual", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        of_step.step(make_state("model.hidden=[8]"), 1, cases(2))


def test_a_loss_that_is_no_sum_over_the_batch_is_refused() -> None:
    with pytest.raises(TrainingError, match="memory of earlier batches"):
        of_step.refuse(make_state("loss.name=contrastive", "loss.memory=2"))
    with pytest.raises(TrainingError, match="combines the tested embeddings"):
        of_step.refuse(make_state("loss.name=wedl"))
    held = make_state("loss.name=wel")
    of_step.refuse(held)
    held.spec = held.spec.model_copy(update={"loss": held.spec.loss.model_copy(update={"start_weight": 0.3})})
    with pytest.raises(TrainingError, match="changes from the initial embeddings"):
        of_step.refuse(held)
