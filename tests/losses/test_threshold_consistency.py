"""Threshold-consistent margin against hand-computed values, a plain loop, its pair weights, and another library."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from dmlcore import losses
from dmlcore.losses.threshold_consistency import ThresholdConsistentMargin

LABELS = torch.tensor([0, 0, 0, 0, 1, 1, 1, 2, 2, 3])  # class 3 is a singleton
# angles in degrees of four vectors whose cosines are simple
ANGLES, CLASSES = torch.tensor([0.0, 60.0, 90.0, 120.0], dtype=torch.float64), torch.tensor([0, 0, 1, 1])


def batch(seed: int, labels: Tensor = LABELS) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    shift = torch.randn(4, 3, generator=generator, dtype=torch.float64)[labels]  # classes overlap
    return shift + torch.randn(len(labels), 3, generator=generator, dtype=torch.float64)


def on_circle(degrees: Tensor) -> Tensor:
    angles = torch.deg2rad(degrees)
    return torch.stack([angles.cos(), angles.sin()], dim=1)


def value_and_gradient(loss: torch.nn.Module, x: Tensor, *given: object, **more: object) -> tuple[Tensor, Tensor]:
    x = x.clone().requires_grad_()
    value = loss(x, *given, **more)
    return value.detach(), torch.autograd.grad(value, x)[0]


def in_a_loop(x: Tensor, labels: Tensor, m_pos: float, m_neg: float) -> float:
    rows, pull, push = x.tolist(), [], []
    for i in range(len(rows)):
        for j in range(i):
            dot = sum(a * b for a, b in zip(rows[i], rows[j], strict=True))
            s = dot / math.hypot(*rows[i]) / math.hypot(*rows[j])
            if labels[i] == labels[j] and s <= m_pos:
                pull.append(m_pos - s)
            elif labels[i] != labels[j] and s >= m_neg:
                push.append(s - m_neg)
    return sum(pull) / max(len(pull), 1) + sum(push) / max(len(push), 1)


def test_a_batch_computed_by_hand() -> None:
    """The positives have cosines 1/2 and sqrt(3)/2, the negatives 0, -1/2, sqrt(3)/2 and 1/2."""
    x, root = on_circle(ANGLES), math.sqrt(3) / 2
    both = ((0.9 - 0.5) + (0.9 - root)) / 2 + root - 0.6
    assert ThresholdConsistentMargin(0.9, 0.6)(x, CLASSES).item() == pytest.approx(both, rel=1e-12)
    # the positive with cosine sqrt(3)/2 is above its margin, and no negative is above the other
    assert ThresholdConsistentMargin(0.8, 0.9)(x, CLASSES).item() == pytest.approx(0.3, rel=1e-12)
    assert ThresholdConsistentMargin(0.0, 0.9)(x, CLASSES).item() == 0


def test_a_pair_on_its_margin_counts() -> None:
    """The cosines are exactly 0 and 1; the positive pair with cosine 0 halves the mean of its kind."""
    x = torch.tensor([[1.0, 0], [0, 1], [-1, 0], [0, 1]])
    assert ThresholdConsistentMargin(0.0, 1.0)(x, torch.tensor([0, 0, 0, 1])).item() == pytest.approx(1 / 3)
    assert ThresholdConsistentMargin(-1.0, 0.0)(x, torch.tensor([0, 1, 0, 1])).item() == 0
    assert ThresholdConsistentMargin(-1.0, 0.0)(x, torch.tensor([0, 1, 2, 3])).item() == pytest.approx(1 / 5)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("m_pos", "m_neg"), [(0.9, 0.5), (0.3, -0.2), (0.2, 0.8), (1.0, -1.0), (-1.0, 1.0)])
def test_the_value_equals_a_plain_loop(m_pos: float, m_neg: float, seed: int) -> None:
    x = batch(seed)
    expected = in_a_loop(x, LABELS, m_pos, m_neg)
    assert ThresholdConsistentMargin(m_pos, m_neg)(x, LABELS).item() == pytest.approx(expected, rel=1e-12, abs=1e-14)


def test_hard_pairs_of_a_kind_weigh_the_same_and_others_nothing() -> None:
    """The derivative by each similarity is minus or plus the inverse of the number of hard pairs of its kind."""
    x = torch.nn.functional.normalize(batch(0)).requires_grad_()
    s, off = (x @ x.mT).detach(), ~torch.eye(len(LABELS), dtype=torch.bool)
    same = LABELS[:, None] == LABELS
    pulled, pushed = same & off & (s <= 0.7), ~same & (s >= 0.2)
    assert 0 < pulled.sum() < (same & off).sum()
    assert 0 < pushed.sum() < (~same).sum()
    weights = pushed.double() / pushed.sum() - pulled.double() / pulled.sum()
    (gradient,) = torch.autograd.grad(ThresholdConsistentMargin(0.7, 0.2)(x, LABELS), x)
    along = 2 * weights @ x.detach()
    across = along - (along * x.detach()).sum(1, keepdim=True) * x.detach()  # cosines ignore lengths
    torch.testing.assert_close(gradient, across, rtol=1e-12, atol=1e-14)


def test_counts_are_those_of_the_hard_pairs() -> None:
    loss = ThresholdConsistentMargin(0.9, 0.6)
    loss(on_circle(ANGLES), CLASSES)
    assert (loss.counts.valid, loss.counts.nonzero, loss.counts.active) == (12, 6, 6)  # each pair in both orders


def test_no_hard_pair_gives_no_loss_and_no_gradient() -> None:
    x = on_circle(torch.tensor([0.0, 0.0, 90.0, 90.0], dtype=torch.float64))
    value, gradient = value_and_gradient(ThresholdConsistentMargin(), x, CLASSES)
    assert value == 0
    assert not gradient.any()


@pytest.mark.parametrize("hyper", [{"m_pos": 1.5}, {"m_neg": -1.1}, {"m_pos": math.inf}, {"m_neg": "data"}])
def test_margins_that_are_no_similarities_are_refused(hyper: dict) -> None:
    (name,) = hyper
    with pytest.raises((TypeError, ValueError), match=f"threshold_consistent_margin: {name} must be"):
        losses.for_training("threshold_consistent_margin", classes=4, embedding_dim=3, **hyper)


def test_pairs_with_a_reference_equal_a_plain_loop() -> None:
    """pytorch-metric-learning 2.9 ignores the reference, so the loop is the only comparison."""
    x, other, labels = batch(0), batch(1), LABELS.flip(0)
    s = [[torch.cosine_similarity(a, b, dim=0).item() for b in other] for a in x]
    pairs = [(s[i][j], LABELS[i] == labels[j]) for i in range(len(x)) for j in range(len(other))]
    pull, push = (
        [0.7 - v for v, same in pairs if same and v <= 0.7],
        [v - 0.2 for v, same in pairs if not same and v >= 0.2],
    )
    expected = sum(pull) / len(pull) + sum(push) / len(push)
    found = ThresholdConsistentMargin(0.7, 0.2)(x, LABELS, None, other, labels)
    assert found.item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("m_pos", "m_neg"), [(0.9, 0.5), (0.3, -0.2), (0.2, 0.8)])
def test_values_and_gradients_equal_pytorch_metric_learning(m_pos: float, m_neg: float, seed: int) -> None:
    pml = pytest.importorskip("pytorch_metric_learning.losses", reason="pytorch-metric-learning is optional")
    theirs = pml.ThresholdConsistentMarginLoss(margin_plus=m_pos, margin_minus=m_neg)
    pairs = [0, 0, 4, 7], [1, 2, 5, 8], [0, 4, 7, 9], [4, 1, 2, 5]
    triplets = [0, 1, 4, 7], [1, 2, 5, 8], [4, 5, 9, 2]
    listed = [tuple(torch.tensor(index) for index in indices) for indices in (pairs, triplets)]
    x = batch(seed)
    for given in ((LABELS,), *((LABELS, indices) for indices in listed)):
        found = value_and_gradient(ThresholdConsistentMargin(m_pos, m_neg), x, *given)
        torch.testing.assert_close(found, value_and_gradient(theirs, x, *given), rtol=1e-12, atol=1e-14)
        assert found[0] > 0


def test_the_defaults_are_those_of_pytorch_metric_learning() -> None:
    pml = pytest.importorskip("pytorch_metric_learning.losses", reason="pytorch-metric-learning is optional")
    theirs, ours = pml.ThresholdConsistentMarginLoss(), ThresholdConsistentMargin()
    assert (ours.m_pos, ours.m_neg) == (theirs.margin_plus, theirs.margin_minus)
    assert (theirs.lambda_plus, theirs.lambda_minus) == (1, 1)
