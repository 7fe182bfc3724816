"""Mean-field losses against plain loops over samples, classes and pairs of mean fields."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dmlcore import losses
from dmlcore.losses.mean_field import log_means
from dmlcore.spec import RunSpec
from dmlcore.training import build, loop

LABELS = {"balanced": [0, 0, 1, 1, 2, 2, 3, 3, 4, 4], "uneven": [4, 0, 0, 1, 0, 1, 2, 2, 0]}  # 3 absent, 4 alone
CLASSES = 5
every_batch = pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)


def batch(labels: list[int]) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(len(labels), 6, generator=generator, dtype=torch.float64), torch.tensor(labels)


def make(name: str, **hyper: float) -> nn.Module:
    torch.manual_seed(1)
    return losses.for_training(name, classes=CLASSES, embedding_dim=6, **hyper).double()


def value_and_gradients(value: Tensor, x: Tensor, loss: nn.Module) -> tuple[Tensor, ...]:
    return value.detach(), *torch.autograd.grad(value, (x, loss.proxies))


def cosines(x: Tensor, loss: nn.Module) -> tuple[Tensor, Tensor]:
    """Return the cosine similarities of samples and fields, and of fields and fields."""
    fields = F.normalize(loss.proxies)
    return F.normalize(x) @ fields.T, fields @ fields.T


def mean_overlap(between: Tensor, overlap: str, m: float, beta: float = 1.0) -> Tensor:
    total = torch.zeros((), dtype=torch.float64)
    for c in range(CLASSES):
        for d in range(CLASSES):
            if c != d and overlap == "hinge":
                total = total + (m - 1 + between[c, d]).relu() ** 2
            elif c != d:
                total = total + (torch.log(1 + torch.exp(beta * (between[c, d] - m))) / beta) ** 2
    return total / CLASSES


@every_batch
@pytest.mark.parametrize("weight", [0.0, 0.7])
def test_mean_field_contrastive_is_that_of_a_loop(labels: list[int], weight: float) -> None:
    x, y = batch(labels)
    x.requires_grad_()
    loss = make("mean_field_contrastive", m_pos=0.1, m_neg=0.9, weight=weight)
    s, between = cosines(x, loss)
    total = torch.zeros((), dtype=torch.float64)
    for i, label in enumerate(labels):
        for c in range(CLASSES):
            total = total + ((1 - s[i, c] - 0.1).relu() if c == label else (0.9 - 1 + s[i, c]).relu())
    expected = total / len(labels) + weight * mean_overlap(between, "hinge", 0.9)
    found = value_and_gradients(loss(x, y), x, loss)
    torch.testing.assert_close(found, value_and_gradients(expected, x, loss), rtol=1e-10, atol=1e-12)
    assert mean_overlap(between, "hinge", 0.9) > 0


@every_batch
def test_without_repulsion_it_is_the_contrastive_loss_with_one_proxy_per_class(labels: list[int]) -> None:
    x, y = batch(labels)
    x.requires_grad_()
    ours = make("mean_field_contrastive", m_pos=0.1, m_neg=0.9)
    twin = make("contrastive_proxy", m_pos=0.1, m_neg=0.9, distance="cosine", divisor="anchors", per_class=1)
    twin.load_state_dict(ours.state_dict())
    found = value_and_gradients(ours(x, y), x, ours)
    torch.testing.assert_close(found, value_and_gradients(twin(x, y), x, twin), rtol=1e-10, atol=1e-12)
    assert ours.counts == twin.counts


@every_batch
@pytest.mark.parametrize(("alpha", "beta", "m", "weight"), [(0.01, 80.0, 0.8, 0.0), (2.0, 10.0, 0.3, 0.7)])
def test_mean_field_multi_similarity_is_that_of_a_loop(
    labels: list[int], alpha: float, beta: float, m: float, weight: float
) -> None:
    x, y = batch(labels)
    x.requires_grad_()
    loss = make("mean_field_multi_similarity", alpha=alpha, beta=beta, m=m, weight=weight)
    s, between = cosines(x, loss)

    def mean_over_class(c: int, terms: Tensor) -> Tensor:
        members = [i for i, label in enumerate(labels) if label == c]
        return sum(terms[i] for i in members) / len(members) if members else torch.zeros((), dtype=torch.float64)

    pull = push = torch.zeros((), dtype=torch.float64)
    for c in range(CLASSES):
        pull = pull + torch.log(1 + mean_over_class(c, torch.exp(-alpha * (s[:, c] - m)))) / alpha
        for d in range(CLASSES):
            if d != c:
                there = mean_over_class(c, torch.exp(beta * (s[:, d] - m)))
                back = mean_over_class(d, torch.exp(beta * (s[:, c] - m)))
                push = push + torch.log(1 + there + back) / (2 * beta)
    expected = (pull + push) / len(set(labels)) + weight * mean_overlap(between, "softplus", m, beta)
    found = value_and_gradients(loss(x, y), x, loss)
    torch.testing.assert_close(found, value_and_gradients(expected, x, loss), rtol=1e-9, atol=1e-11)


def test_steep_settings_neither_overflow_nor_lose_a_class_far_below_another() -> None:
    values = torch.tensor([[900.0], [900.0], [-900.0], [-1000.0]], requires_grad=True)
    found = log_means(values, torch.tensor([1, 1, 0, 0]), 2)
    torch.testing.assert_close(found, torch.tensor([[-900 - math.log(2)], [900.0]]))
    (gradient,) = torch.autograd.grad(found.sum(), values)
    torch.testing.assert_close(gradient, torch.tensor([[0.5], [0.5], [1.0], [0.0]]))


@pytest.mark.parametrize("name", ["mean_field_contrastive", "mean_field_multi_similarity"])
def test_absent_classes_are_pushed_and_never_pulled(name: str) -> None:
    """A field of a class without samples moves away from a sample next to it, and stays if it is far from all."""
    x, y = batch([0, 0, 1, 1])
    loss = make(name)
    near = F.normalize(x[:1])[0]
    loss.proxies.data[2] = near + 0.3 * torch.eye(6, dtype=torch.float64)[0]
    loss.proxies.data[3] = -x.sum(0)
    (gradient,) = torch.autograd.grad(loss(x, y), loss.proxies)
    assert (gradient[2] * near).sum() > 0  # a descent lowers the similarity to the sample
    assert gradient[3].norm() < 1e-6 * gradient[2].norm()


@pytest.mark.parametrize("name", ["mean_field_contrastive", "mean_field_multi_similarity"])
def test_mean_fields_have_the_learning_rate_of_proxies(name: str) -> None:
    spec = RunSpec().with_overrides(
        [f"loss.name={name}", "loss.learning_rate=0.05", "optimiser.learning_rate=0.001", "loss.proxy_start=means"]
    )
    state = build.build(spec, build.load_data(spec), torch.device("cpu"))
    rates = {id(p): group["base_lr"] for group in state.optimiser.param_groups for p in group["params"]}
    assert rates[id(state.loss.metric.proxies)] == 0.05
    before = state.loss.metric.proxies.detach().clone()
    loop.step(state, 1)
    assert not torch.equal(state.loss.metric.proxies, before)
