"""Smoothed recall at k against plain loops, and against the score that it approaches at low temperatures."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dmlcore import losses, metrics

LABELS = {"balanced": [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3], "uneven": [4, 4, 4, 4, 4, 1, 1, 1, 2, 2, 0, 3]}
every_batch = pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)


def batch(labels: list[int]) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    order = torch.randperm(len(labels), generator=generator)
    return torch.randn(len(labels), 6, generator=generator, dtype=torch.float64), torch.tensor(labels)[order]


def make(**hyper: float) -> nn.Module:
    return losses.for_training("recall_at_k", classes=5, embedding_dim=6, **hyper).double()


def looped(x: Tensor, y: Tensor, tau_1: float, tau_2: float, ks: list[int]) -> Tensor:
    s = F.normalize(x) @ F.normalize(x).T
    terms = []
    for i in range(len(y)):
        gallery = [j for j in range(len(y)) if j != i]
        positives = [j for j in gallery if y[j] == y[i]]
        if not positives:
            continue
        ranks = {
            j: 1 + sum(torch.sigmoid((s[i, other] - s[i, j]) / tau_2) for other in gallery if other != j)
            for j in positives
        }
        for k in ks:
            found = sum(torch.sigmoid((k - ranks[j]) / (tau_1 * k)) for j in positives)
            terms.append(1 - torch.clamp(found, max=k) / min(k, len(positives)))
    return torch.stack(terms).mean()


@every_batch
@pytest.mark.parametrize(
    ("hyper", "ks"),
    [
        ({}, [1, 2, 4, 8, 16]),
        ({"tau_1": 0.3, "tau_2": 0.2, "largest": 5}, [1, 2, 4]),
        ({"tau_2": 0.5, "largest": 1}, [1]),
    ],
)
def test_value_and_gradient_are_those_of_a_loop(labels: list[int], hyper: dict[str, float], ks: list[int]) -> None:
    x, y = batch(labels)
    x.requires_grad_()
    found = make(**hyper)(x, y)
    expected = looped(x, y, hyper.get("tau_1", 1.0), hyper.get("tau_2", 0.01), ks)
    for value, twin in ((found, expected), *zip(*(torch.autograd.grad(v, x) for v in (found, expected)), strict=True)):
        torch.testing.assert_close(value, twin, rtol=1e-10, atol=1e-12)


def test_a_case_by_hand() -> None:
    """Anchor at 0 degrees, its positive at 60, a negative at 90; k = 1 and one step of the rank for each pair."""
    angles = torch.tensor([0.0, 60.0, 90.0], dtype=torch.float64).deg2rad()
    x = torch.stack([angles.cos(), angles.sin()], 1)
    first = 1 + 1 / (1 + math.exp(0.5))  # the negative has cosine 0, the positive 0.5, at temperature 1
    second = 1 + 1 / (1 + math.exp(0.5 - math.cos(math.radians(30))))
    expected = sum(1 - 1 / (1 + math.exp(rank - 1)) for rank in (first, second)) / 2
    loss = make(tau_1=1.0, tau_2=1.0, largest=1)
    assert loss(x, torch.tensor([0, 0, 1])).item() == pytest.approx(expected, rel=1e-12)
    assert loss.counts.valid == 2


@pytest.mark.parametrize("k", [1, 2, 4, 8])
def test_at_low_temperatures_it_is_one_minus_the_recall(k: int) -> None:
    """A positive at rank k counts half, so the limit is the mean of the recalls at k and at k - 1."""
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(40, 6, generator=generator, dtype=torch.float64)
    y = torch.arange(20).repeat_interleave(2)  # one positive per anchor, so that R@k is the share of positives found
    recall_at = metrics.retrieval(F.normalize(x).numpy(), y.numpy(), ks=(k, k - 1) if k > 1 else (1,)).recall_at
    loss = make(tau_1=1e-3, tau_2=1e-7)
    loss.ks = [k]
    assert loss(x, y).item() == pytest.approx(1 - (recall_at[k] + recall_at.get(k - 1, 0.0)) / 2, abs=1e-6)


def test_training_raises_the_recall() -> None:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(24, 4, generator=generator, dtype=torch.float64).requires_grad_()
    y = torch.arange(6).repeat_interleave(4)
    loss = make(tau_2=0.1)
    before = metrics.retrieval(F.normalize(x.detach()).numpy(), y.numpy(), ks=(1,)).map_at_r
    optimiser = torch.optim.Adam([x], 0.05)
    for _ in range(100):
        optimiser.zero_grad()
        loss(x, y).backward()
        optimiser.step()
    assert metrics.retrieval(F.normalize(x.detach()).numpy(), y.numpy(), ks=(1,)).map_at_r > before + 0.2
