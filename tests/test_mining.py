"""Miners against plain loops over anchors, positives and negatives."""

from __future__ import annotations

import pytest
import torch

from dmlcore import losses, mining


def batch(seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(13, 2, generator=generator)
    x[3] = x[7]  # ties
    labels = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1, 0, 1, 0, 3, 0])  # class 3 has no positive
    return x, labels, torch.cdist(x, x)


def plain(name: str, d: torch.Tensor, labels: torch.Tensor) -> list[tuple[int, int, int]]:
    """The definitions, word for word."""
    n, found = range(len(labels)), []
    for a in n:
        positives = [j for j in n if j != a and labels[j] == labels[a]]
        negatives = [j for j in n if labels[j] != labels[a]]
        if not positives or not negatives:
            continue
        if name == "batch_hard":
            positives = [max(positives, key=lambda j: (d[a, j].item(), -j))]
        if name.startswith("easy_positive"):
            positives = [min(positives, key=lambda j: (d[a, j].item(), j))]
        for p in positives:
            allowed = [j for j in negatives if d[a, j] > d[a, p]] if "semi_hard" in name else negatives
            if allowed:
                found.append((a, p, min(allowed, key=lambda j: (d[a, j].item(), j))))
    return found


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", mining.names())
def test_a_miner_is_its_definition(name, seed):
    _, labels, d = batch(seed)
    mined = mining.MINERS[name](d, labels)
    assert list(zip(*(x.tolist() for x in mined), strict=True)) == plain(name, d, labels)
    assert all(x.dtype == torch.int64 for x in mined)


@pytest.mark.parametrize("name", mining.names())
@pytest.mark.parametrize("labels", [[0, 0, 0], [0, 1, 2], [0]])
def test_batches_without_a_triplet_give_none(name, labels):
    x = torch.randn(len(labels), 2)
    mined = mining.MINERS[name](torch.cdist(x, x), torch.tensor(labels))
    assert [len(index) for index in mined] == [0, 0, 0]


@pytest.mark.parametrize("name", mining.names())
def test_a_loss_takes_what_a_miner_hands_over(name):
    x, labels, d = batch(1)
    mined = mining.MINERS[name](d, labels)
    loss = losses.create("facenet", m=0.3)
    expected = torch.stack([loss.clamped(x[a], x[p], x[n]) for a, p, n in plain(name, d, labels)]).mean()
    assert loss(x, labels, mined).item() == pytest.approx(expected.item(), rel=1e-5)


def test_shapes_are_checked():
    with pytest.raises(ValueError, match=r"\(B, B\)"):
        mining.semi_hard(torch.zeros(3, 2), torch.zeros(3, dtype=torch.int64))
