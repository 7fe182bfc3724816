"""Sigmoid loss against a plain loop, against cross-entropy on pairs, and with its learned threshold in a run."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from dmlcore import losses
from dmlcore.losses.memory import CrossBatchMemory
from dmlcore.spec import RunSpec
from dmlcore.training import build, loop

LABELS = [4, 4, 4, 4, 1, 1, 1, 2, 2, 0, 3]  # classes 0 and 3 are singletons


def batch() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(len(LABELS), 6, generator=generator, dtype=torch.float64), torch.tensor(LABELS)


def make(**hyper: float) -> torch.nn.Module:
    return losses.for_training("sigmoid", classes=5, embedding_dim=6, **hyper).double()


def test_it_is_the_sum_of_a_loop_over_ordered_pairs_divided_by_the_samples() -> None:
    x, y = batch()
    loss = make(slope=4.0, bias=-1.5)
    t, b = math.exp(loss.log_slope.item()), -1.5
    assert t == pytest.approx(4.0, rel=1e-6)
    s = F.normalize(x) @ F.normalize(x).T
    total = 0.0
    for i in range(len(y)):
        for j in range(len(y)):
            if i != j:
                z = 1 if y[i] == y[j] else -1
                total -= math.log(1 / (1 + math.exp(-z * (t * float(s[i, j]) + b))))
    assert loss(x, y).item() == pytest.approx(total / len(y), rel=1e-12)


def test_gradients_of_embeddings_slope_and_bias_are_those_of_binary_cross_entropy() -> None:
    x, y = batch()
    loss = make(slope=4.0, bias=-1.5)
    leaf = x.clone().requires_grad_()
    found = torch.autograd.grad(loss(leaf, y), (leaf, loss.log_slope, loss.bias))
    apart = ~torch.eye(len(y), dtype=torch.bool)
    log_odds = (F.normalize(leaf) @ F.normalize(leaf).T * loss.log_slope.exp() + loss.bias)[apart]
    same = (y[:, None] == y)[apart].double()
    twin = F.binary_cross_entropy_with_logits(log_odds, same, reduction="sum") / len(y)
    torch.testing.assert_close(found, torch.autograd.grad(twin, (leaf, loss.log_slope, loss.bias)))


def test_the_defaults_are_those_of_the_paper() -> None:
    loss = make()
    assert loss.log_slope.item() == pytest.approx(math.log(10))
    assert loss.bias.item() == -10.0


def test_a_pair_at_the_threshold_has_probability_one_half() -> None:
    loss = make(slope=8.0, bias=-2.0)
    assert loss.threshold.item() == pytest.approx(0.25)
    angle = math.acos(loss.threshold.item())
    pair = torch.tensor([[1.0, 0.0], [math.cos(angle), math.sin(angle)]], dtype=torch.float64)
    for labels in ([0, 0], [0, 1]):  # two ordered pairs of log 2 each, divided by two samples
        assert loss(pair, torch.tensor(labels)).item() == pytest.approx(math.log(2), rel=1e-9)


def test_training_slope_and_bias_alone_separates_the_pairs() -> None:
    """Two classes at cosine 1 within and 0 between: the threshold goes between them, and the loss towards 0."""
    x, y = torch.eye(2, dtype=torch.float64).repeat_interleave(4, 0), torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])
    loss = make()
    optimiser = torch.optim.Adam(loss.parameters(), 0.1)
    for _ in range(300):
        optimiser.zero_grad()
        value = loss(x, y)
        value.backward()
        optimiser.step()
    assert 0.3 < loss.threshold.item() < 0.7
    assert value.item() < 0.1


def test_a_run_records_slope_and_threshold() -> None:
    spec = RunSpec().with_overrides(["loss.name=sigmoid", "loss.learning_rate=0.1"])
    state = build.build(spec, build.load_data(spec), torch.device("cpu"))
    before = {name: float(value) for name, value in state.loss.measured().items()}
    assert before["slope"] == pytest.approx(10.0)
    assert before["threshold"] == pytest.approx(1.0)
    loop.step(state, 1)
    after = {name: float(value) for name, value in state.loss.measured().items()}
    assert after["threshold"] == pytest.approx(state.loss.metric.threshold.item())
    assert after["threshold"] != before["threshold"]
    assert after["slope"] != before["slope"]


def test_a_memory_reports_what_its_loss_learns() -> None:
    memory = CrossBatchMemory(make(slope=5.0), 2, 4, 6)
    assert memory.measured().keys() == {"slope", "threshold"}
    assert float(memory.measured()["slope"]) == pytest.approx(5.0)
