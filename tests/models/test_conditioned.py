"""Conditioned embeddings compared with plain loops: inputs, their order, and the composition of the result."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dmlcore.models.conditioned import ConditionedEmbedding, create, in_order
from dmlcore.spec.sections import ConditioningSpec


def make_embedding(**settings: object) -> ConditionedEmbedding:
    module = create(ConditioningSpec(neighbours=3, **settings), 4, seed=1)
    assert module is not None
    return module.double().eval()


def sequences(seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(2, 4, 4)))


def read_one(lstm: nn.LSTM, sequence: list[Tensor], layer: int, *, backward: bool) -> list[Tensor]:
    """Compute the states of one direction of one layer by the equations of the cell."""
    end = f"_l{layer}" + ("_reverse" if backward else "")
    w_in, w_own, b_in, b_own = (getattr(lstm, name + end) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    h = c = torch.zeros(w_own.shape[1], dtype=torch.float64)
    states = []
    for x in reversed(sequence) if backward else sequence:
        i, f, g, o = (w_in @ x + b_in + w_own @ h + b_own).chunk(4)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        states.append(h)
    return states[::-1] if backward else states


def test_the_lstm_reads_both_ways_and_its_last_states_join_the_sample() -> None:
    module, points = make_embedding(), sequences()
    assert module.lstm is not None
    assert module.linear is not None
    assert (module.lstm.hidden_size, module.lstm.num_layers, module.lstm.dropout) == (2, 2, 0.5)
    for row, embedded in zip(points, module(points), strict=True):
        sequence = list(row)
        for layer in range(2):
            there, back = (read_one(module.lstm, sequence, layer, backward=way) for way in (False, True))
            sequence = [torch.cat(pair) for pair in zip(there, back, strict=True)]
        # Forward at the last place, backward at the first (Can 2018, Ch. 4).
        read = torch.cat([sequence[-1][:2], sequence[0][2:]])
        expected = module.linear.weight @ torch.cat([read, row[0]]) + module.linear.bias
        torch.testing.assert_close(embedded, expected)


def test_simpler_means_in_place_of_the_lstm() -> None:
    points = sequences()
    average, concat, mean = make_embedding(by="average"), make_embedding(by="concat"), make_embedding(by="mean")
    assert average.linear is not None
    assert concat.linear is not None
    read = torch.cat([points[:, 1:].sum(1) / 3, points[:, 0]], 1)
    torch.testing.assert_close(average(points), read @ average.linear.weight.mT + average.linear.bias)
    read = torch.cat([points[:, 1], points[:, 2], points[:, 3], points[:, 0]], 1)
    torch.testing.assert_close(concat(points), read @ concat.linear.weight.mT + concat.linear.bias)
    torch.testing.assert_close(mean(points), points.sum(1) / 4)
    assert not list(mean.parameters())


def test_sizes_as_published_and_as_asked_for() -> None:
    published = create(ConditioningSpec(neighbours=16), 512, seed=0)
    assert published is not None
    assert published.lstm is not None
    assert published.linear is not None
    assert (published.lstm.hidden_size, published.lstm.num_layers) == (256, 2)
    assert published.linear.weight.shape == (512, 1024)
    own = make_embedding(hidden=7, layers=1)
    assert own.lstm is not None
    assert (own.lstm.hidden_size, own.lstm.dropout) == (7, 0.0)  # a single layer has nothing between layers
    assert own(sequences()).shape == (2, 4)
    assert create(ConditioningSpec(), 4, seed=0) is None


def test_the_seed_decides_and_nothing_else_is_drawn() -> None:
    torch.manual_seed(5)
    before = torch.rand(1)
    torch.manual_seed(5)
    one, two = make_embedding(), make_embedding()
    assert torch.equal(torch.rand(1), before)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


@pytest.mark.parametrize("order", ["nearest", "furthest", "random"])
def test_orders(order: str) -> None:
    listed = np.array([[3, 1, 2, 0]] * 50)
    ordered = in_order(listed, order, seed=0)
    if order == "random":
        assert len({tuple(row) for row in ordered.tolist()}) > 10
        assert (np.sort(ordered, 1) == np.arange(4)).all()
        assert (ordered == in_order(listed, order, seed=0)).all()
    else:
        assert ordered[0].tolist() == ([3, 1, 2, 0] if order == "nearest" else [0, 2, 1, 3])
