"""Losses and miners in training code that is not ours: evaluation, second derivatives, dtypes, empty batches."""

import pytest
import torch

from dmlcore import losses, mining
from tests.losses.test_batch_contract import batch, make
from tests.members import in_one_case

every_loss = pytest.mark.parametrize("name", list(losses.LOSSES))
LABELS = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]


@every_loss
def test_values_are_the_same_without_gradients_and_under_autocast(name):
    x, y = batch(LABELS)
    expected = make(name, {})(x.clone().requires_grad_(), y).detach()
    for mode in (torch.inference_mode(), torch.no_grad(), torch.autocast("cpu", torch.bfloat16)):
        with mode:
            assert torch.equal(make(name, {})(x, y), expected)


@in_one_case(name=sorted({*losses.LOSSES} - {"circle"}))
def test_second_derivatives_are_slopes_of_the_first(name):
    (x, y), loss = batch(LABELS, torch.float64), make(name, {}, torch.float64)
    loss(x, y)
    loss.eval()  # running means have no gradient
    leaves = [x.requires_grad_(), *(p for p in loss.parameters() if p.requires_grad)]
    along = [torch.randn(p.shape, generator=torch.Generator().manual_seed(3), dtype=p.dtype) for p in leaves]
    first = torch.autograd.grad(loss(x, y), leaves, create_graph=True)
    second, beside = torch.autograd.grad(first, leaves, along, materialize_grads=True), []
    for step in (1e-6, -2e-6):
        for leaf, direction in zip(leaves, along, strict=True):
            leaf.data += step * direction
        beside.append(torch.autograd.grad(loss(x, y), leaves))
    for exact, ahead, behind in zip(second, *beside, strict=True):
        torch.testing.assert_close(exact, (ahead - behind) / 2e-6, rtol=1e-4, atol=1e-5)


@every_loss
def test_every_dtype_is_computed_in_float32_at_least(name):
    (x, y), loss = batch(LABELS), make(name, {}, torch.bfloat16)
    assert make(name, {})(x.double(), y).dtype == torch.float64
    assert torch.equal(loss(x.bfloat16(), y), loss.float()(x.bfloat16().float(), y))


@every_loss
def test_batches_without_tuples_give_a_finite_loss_with_a_gradient(name):
    for labels in ([], [1], [2, 2], [0, 1, 2]):
        x, y = batch(labels)
        value = make(name, {})(x.requires_grad_(), y.long())
        assert value.isfinite() if labels else value == 0
        assert torch.autograd.grad(value, x)[0].isfinite().all()


@in_one_case(name=mining.names())
def test_miners_take_empty_batches_and_check_labels(name):
    assert not any(map(len, mining.create(name)(torch.zeros(0, 8), torch.zeros(0, dtype=torch.int64)) or ()))
    for labels, error in ((torch.zeros(4), TypeError), (torch.zeros(3, dtype=torch.int64), ValueError)):
        with pytest.raises(error, match="labels must"):
            mining.create(name)(torch.zeros(4, 8), labels)
