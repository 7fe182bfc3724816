"""Supervised contrastive and Circle losses against plain loops and pytorch-metric-learning, with listed pairs and
references.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from dmlcore import losses
from dmlcore.conformance.printed import ranking

UNEVEN = torch.tensor([0, 0, 0, 0, 1, 1, 1, 2, 2, 3])  # class 3 is a singleton
NAMES = ("supervised_contrastive", "circle")
X = torch.randn(len(UNEVEN), 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def make(name: str, **hyper: float) -> torch.nn.Module:
    return losses.for_training(name, classes=4, embedding_dim=6, **hyper).double()


def value_and_gradient(loss: torch.nn.Module, *given: object, **more: object) -> tuple[Tensor, Tensor]:
    x = X.clone().requires_grad_()
    value = loss(x, UNEVEN, *given, **more)
    return value.detach(), torch.autograd.grad(value, x)[0]


def cosines() -> list[list[float]]:
    rows = X.tolist()
    dot = [[sum(a * b for a, b in zip(x, y, strict=True)) for y in rows] for x in rows]
    return [[dot[i][j] / math.sqrt(dot[i][i] * dot[j][j]) for j in range(len(rows))] for i in range(len(rows))]


def groups(i: int) -> tuple[list[int], list[int]]:
    labels = UNEVEN.tolist()
    return (
        [j for j in range(len(labels)) if j != i and labels[j] == labels[i]],
        [k for k in range(len(labels)) if labels[k] != labels[i]],
    )


def test_supervised_contrastive_equals_a_plain_loop():
    s, terms = cosines(), []
    for i in range(len(UNEVEN)):
        positives, negatives = groups(i)
        below = sum(math.exp(s[i][k] / 0.2) for k in positives + negatives)
        if positives:
            terms.append(-sum(math.log(math.exp(s[i][j] / 0.2) / below) for j in positives) / len(positives))
    value = make("supervised_contrastive", temperature=0.2)(X, UNEVEN).item()
    assert value == pytest.approx(sum(terms) / len(terms), rel=1e-12)


def test_circle_equals_a_plain_loop():
    s, terms, m, gamma = cosines(), [], 0.3, 8.0
    for i in range(len(UNEVEN)):
        positives, negatives = groups(i)
        push = sum(math.exp(gamma * max(s[i][k] + m, 0) * (s[i][k] - m)) for k in negatives)
        pull = sum(math.exp(-gamma * max(1 + m - s[i][j], 0) * (s[i][j] - 1 + m)) for j in positives)
        if positives and negatives:
            terms.append(math.log(1 + push * pull))
    assert make("circle", m=m, gamma=gamma)(X, UNEVEN).item() == pytest.approx(sum(terms) / len(terms), rel=1e-12)


def test_the_gradient_of_circle_takes_its_weights_as_constants():
    x = X.clone().requires_grad_()
    printed = ranking.circle(x, UNEVEN.tolist(), 0.4, 80.0)
    expected = printed.detach(), torch.autograd.grad(printed, x)[0]
    torch.testing.assert_close(value_and_gradient(make("circle")), expected, rtol=1e-10, atol=1e-12)


def test_both_equal_pytorch_metric_learning_with_gradients_and_on_listed_pairs():
    from pytorch_metric_learning import losses as pml

    pairs = (
        torch.tensor([0, 0, 4, 7]),
        torch.tensor([1, 2, 5, 8]),
        torch.tensor([0, 4, 4, 7]),
        torch.tensor([4, 0, 9, 1]),
    )
    for name, theirs in zip(NAMES, (pml.SupConLoss(0.1), pml.CircleLoss(0.4, 80)), strict=True):
        for given in ((), (pairs,)):
            torch.testing.assert_close(
                value_and_gradient(make(name), *given), value_and_gradient(theirs, *given), rtol=1e-9, atol=1e-11
            )


def test_a_reference_that_is_the_batch_adds_each_sample_to_its_own_positives():
    for name in NAMES:
        loss = make(name)
        beside = loss(X, UNEVEN, ref_emb=X, ref_labels=UNEVEN)
        assert beside.isfinite()
        assert loss.counts.valid == len(UNEVEN)  # includes the singleton, whose copy is its positive
        loss(X, UNEVEN)
        assert loss.counts.valid == len(UNEVEN) - 1


def test_second_derivatives_are_refused() -> None:
    x = X.clone().requires_grad_()
    (first,) = torch.autograd.grad(
        losses.for_training("circle", classes=4, embedding_dim=8)(x, UNEVEN), x, create_graph=True
    )
    with pytest.raises(RuntimeError, match="circle has no second derivatives"):
        first.sum().backward()
