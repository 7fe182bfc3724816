"""CosFace and sub-centre ArcFace against plain loops, pytorch-metric-learning and the losses that they generalise."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from dmlcore import losses

CLASSES, DIM = 5, 4
Y = [0, 0, 0, 1, 1, 2, 4]  # class 3 is absent
X = torch.randn(len(Y), DIM, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
LABELS = torch.tensor(Y)


def make(name: str, **hyper: float) -> torch.nn.Module:
    torch.manual_seed(1)
    return losses.for_training(name, classes=CLASSES, embedding_dim=DIM, **hyper).double()


def value_and_gradients(loss: torch.nn.Module, weights: Tensor, *, transposed: bool = False) -> tuple[Tensor, ...]:
    x = X.clone().requires_grad_()
    value = loss(x, LABELS)
    by_x, by_weights = torch.autograd.grad(value, (x, weights))
    return value.detach(), by_x, by_weights.T if transposed else by_weights


def cosine(a: list[float], b: list[float]) -> float:
    return sum(i * j for i, j in zip(a, b, strict=True)) / (math.hypot(*a) * math.hypot(*b))


def cross_entropy(logits: list[float], own: int) -> float:
    return math.log(sum(math.exp(value - logits[own]) for value in logits))


def test_cosface_equals_a_plain_loop():
    loss = make("cosface", margin=0.2, scale=10.0)
    proxies = loss.proxies.tolist()
    terms = [
        cross_entropy([10 * (cosine(x, w) - 0.2 * (c == label)) for c, w in enumerate(proxies)], label)
        for x, label in zip(X.tolist(), Y, strict=True)
    ]
    assert loss(X, LABELS).item() == pytest.approx(sum(terms) / len(terms), rel=1e-12)


def test_sub_centre_arcface_equals_a_plain_loop():
    loss = make("sub_centre_arcface", margin=30.0, scale=10.0, centres=3)
    proxies, margin, terms = loss.proxies.tolist(), math.radians(30), []
    for x, label in zip(X.tolist(), Y, strict=True):
        angles = [min(math.acos(cosine(x, w)) for w in proxies[3 * c : 3 * c + 3]) for c in range(CLASSES)]
        assert angles[label] <= math.pi - margin
        logits = [10 * math.cos(angle + margin * (c == label)) for c, angle in enumerate(angles)]
        terms.append(cross_entropy(logits, label))
    assert loss(X, LABELS).item() == pytest.approx(sum(terms) / len(terms), rel=1e-12)


def test_both_equal_pytorch_metric_learning_with_gradients():
    from pytorch_metric_learning import losses as pml

    sizes = {"num_classes": CLASSES, "embedding_size": DIM}
    for ours, theirs in (
        (make("cosface"), pml.CosFaceLoss(**sizes, margin=0.35, scale=64)),
        (make("sub_centre_arcface"), pml.SubCenterArcFaceLoss(**sizes, margin=28.6, scale=64, sub_centers=3)),
    ):
        theirs = theirs.double()
        theirs.W.data = ours.proxies.detach().T.clone()
        torch.testing.assert_close(
            value_and_gradients(ours, ours.proxies),
            value_and_gradients(theirs, theirs.W, transposed=True),
            rtol=1e-9,
            atol=1e-11,
        )


def test_one_centre_is_arcface_and_no_margin_is_the_normalised_softmax():
    for ours, known in (
        (make("sub_centre_arcface", centres=1), make("arcface")),
        (make("cosface", margin=0.0, scale=8.0), make("proxy_nca", temperature=1 / 8)),
    ):
        known.load_state_dict(ours.state_dict())
        torch.testing.assert_close(
            value_and_gradients(ours, ours.proxies), value_and_gradients(known, known.proxies), rtol=1e-12, atol=1e-14
        )


def test_only_the_nearest_centre_of_a_class_is_moved():
    loss = losses.for_training("sub_centre_arcface", classes=2, embedding_dim=2, centres=2, scale=4.0).double()
    loss.proxies.data[:] = torch.tensor([[1.0, 0.0], [-1.0, 0.1], [0.0, 1.0], [0.0, -1.0]])
    loss(torch.tensor([[0.9, 0.2]], dtype=torch.float64), torch.tensor([0])).backward()
    assert loss.proxies.grad.abs().sum(1).gt(0).tolist() == [True, False, True, False]
