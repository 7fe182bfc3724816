"""Contract of every loss that is not a triplet loss, in all its forms."""

from __future__ import annotations

import copy
import math
import pickle

import pytest
import torch
from torch import Tensor, nn

from dmlcore import losses
from dmlcore.catalogue import Choice
from tests.members import in_a_case_each

# The first two samples of a class form its pair; (N+P+1)-tuplets have their own tests.
ORDERED = ("n_pair", {"form": "one"}), ("angular_n_pair", {})


def forms(name: str) -> list[dict]:
    """Return the default settings and one variant per choice."""
    formula = losses.describe(name)
    options: list[dict] = [{}]
    for key, parameter in formula.parameters.items():
        if isinstance(parameter, Choice):
            options += [{key: option} for option in parameter.options if option != formula.defaults[key]]
    if formula.rule is None:
        return options
    # some losses need embeddings of another size, or the features before the embedding layer
    here = {"embedding_dim": 8, "pooled_dim": 0}
    return [hyper for hyper in options if not formula.rule({**formula.defaults, **hyper, **here})]


every_form = in_a_case_each("hyper", {name: forms(name) for name in losses.batch_names()})


def make(name: str, hyper: dict, dtype: torch.dtype = torch.float32) -> nn.Module:
    torch.default_generator.manual_seed(0)
    return losses.for_training(name, classes=5, embedding_dim=8, **hyper).to(dtype)


def batch(labels: list[int], dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(len(labels), 8, generator=generator, dtype=torch.float64).to(dtype), torch.tensor(labels)


UNEVEN = [0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3]  # class 4 is absent
LABELS = {
    "uneven": [*UNEVEN[:-2], 4, 4, 4],  # class 3 is a singleton
    "no positives": [0, 1, 2, 3, 4],
    "no negatives": [2] * 6,
    "one sample": [1],
}


@every_form
def test_value_and_gradients_are_finite_whatever_the_batch(name: str, hyper: dict) -> None:
    for labels in LABELS.values():
        x, y = batch(labels)
        coincident = x.clone()
        coincident[1:] = x[0]
        extremes = (torch.zeros_like(x), 1e-30 * x, 100 * x) if labels is LABELS["uneven"] else ()
        for points in (x, coincident, *extremes):
            loss, points = make(name, hyper), points.clone().requires_grad_()
            value = loss(points, y)
            value.backward()
            assert value.shape == ()
            assert value.dtype == torch.float32
            assert value.isfinite(), labels
            assert points.grad.isfinite().all(), labels
            for parameter in loss.parameters():
                assert parameter.grad is None or parameter.grad.isfinite().all()


@every_form
def test_long_vectors_are_either_handled_or_refused_by_name(name: str, hyper: dict) -> None:
    x, y = batch(UNEVEN)
    x = (1e30 * x).requires_grad_()
    loss = make(name, hyper)
    if getattr(loss, "unbounded", False):
        value = loss(x, y)
        value.backward()
        assert value.isfinite()
        assert x.grad.isfinite().all()
        shorter = make(name, hyper)(1e-30 * x.detach(), y)
        torch.testing.assert_close(value.detach(), shorter.detach(), rtol=1e-5, atol=1e-6)
    else:
        with pytest.raises(ValueError, match=r"embeddings reaches .*; normalise it first"):
            loss(x, y)


@every_form
def test_autograd_equals_central_differences(name: str, hyper: dict) -> None:
    if name == "wedl" and hyper.get("compression") == "on":
        return  # its compression is trained on detached embeddings
    if name == "circle":
        return  # its gradient takes the weights as constants; tests/losses/test_circle.py compares it with the formula
    x, y = batch(UNEVEN, torch.float64)
    loss = make(name, hyper, torch.float64)
    loss(x, y)
    loss.eval()  # running means have no gradient and are constant in evaluation mode
    leaf = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(leaf, y), leaf)
    generator = torch.Generator().manual_seed(2)
    for _ in range(2):  # along a direction that changes all entries
        along = torch.randn(x.shape, generator=generator, dtype=x.dtype)
        numeric = (loss(x + 1e-6 * along, y) - loss(x - 1e-6 * along, y)).item() / 2e-6
        assert (gradient * along).sum().item() == pytest.approx(numeric, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("name", losses.batch_names())
def test_both_ends_of_every_slider_give_a_loss(name: str) -> None:
    x, y = batch(UNEVEN)
    for key, parameter in losses.describe(name).parameters.items():
        if not isinstance(parameter, Choice):
            for end in (parameter.low, parameter.high):
                assert make(name, {key: end})(x, y).isfinite(), (key, end)


@every_form
def test_half_precision_embeddings_are_read_as_float32(name: str, hyper: dict) -> None:
    x, y = batch(UNEVEN)
    for dtype in (torch.bfloat16, torch.float16):
        low = x.to(dtype).requires_grad_()
        value = make(name, hyper)(low, y)
        value.backward()
        assert value.dtype == torch.float32
        assert low.grad.dtype == dtype
        assert torch.equal(value, make(name, hyper)(low.float(), y))


@every_form
def test_order_of_the_batch_changes_nothing(name: str, hyper: dict) -> None:
    if (name, hyper) in ORDERED:
        return
    x, y = batch(UNEVEN, torch.float64)
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(1))
    found = []
    for points, labels in ((x, y), (x[order], y[order])):
        points = points.clone().requires_grad_()
        value = make(name, hyper, torch.float64)(points, labels)
        found.append((value.detach(), torch.autograd.grad(value, points)[0]))
    torch.testing.assert_close(found[1], (found[0][0], found[0][1][order]), rtol=1e-9, atol=1e-11)


@every_form
def test_float32_follows_float64(name: str, hyper: dict) -> None:
    x, y = batch(UNEVEN)
    loss = make(name, hyper)
    single, double = loss(x, y), copy.deepcopy(loss).double()(x.double(), y)
    assert single.item() == pytest.approx(double.item(), rel=2e-5, abs=2e-5)


@every_form
def test_a_loss_survives_copies_and_pickling_after_a_batch(name: str, hyper: dict) -> None:
    x, y = batch(UNEVEN)
    loss = make(name, hyper)
    value = loss(x.requires_grad_(), y)
    fresh = make(name, hyper)
    for again in (copy.deepcopy(fresh), pickle.loads(pickle.dumps(fresh)), copy.deepcopy(loss)):
        again.load_state_dict(fresh.state_dict())
        assert torch.equal(again(x, y), value)


@every_form
def test_what_a_loss_learns_has_a_gradient(name: str, hyper: dict) -> None:
    x, y = batch(UNEVEN)
    loss = make(name, hyper)
    loss(x.requires_grad_(), y).backward()
    assert x.grad.any()
    for key, parameter in loss.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None, key
            assert parameter.grad.any(), key
    if losses.describe(name).proxies:
        assert any(parameter.requires_grad for parameter in loss.parameters())


@every_form
def test_counts_nest_and_are_those_of_the_last_batch(name: str, hyper: dict) -> None:
    loss = make(name, hyper)
    if not hasattr(loss, "counts"):
        assert not losses.describe(name).pairs
        return
    loss(*batch(UNEVEN))
    assert 0 <= loss.counts.active <= loss.counts.nonzero <= loss.counts.valid
    if losses.describe(name).pairs:
        loss(*batch(LABELS["one sample"]))
        assert (loss.counts.valid, loss.counts.nonzero, loss.counts.active) == (0, 0, 0)


@pytest.mark.parametrize("name", losses.batch_names())
def test_bad_input_is_named(name: str) -> None:
    x, y = batch(UNEVEN)
    loss = make(name, {})
    for bad_x, bad_y, error, argument in (
        (torch.full_like(x, math.nan), y, ValueError, "embeddings"),
        (x[0], y, ValueError, "embeddings"),
        (x.long(), y, TypeError, "embeddings"),
        (x, y[:3], ValueError, "labels"),
        (x, y.float(), TypeError, "labels"),
    ):
        with pytest.raises(error, match=argument):
            loss(bad_x, bad_y)
    if losses.describe(name).proxies:
        with pytest.raises(ValueError, match=r"labels must be in 0\.\.4"):
            loss(x, y + 3)
    elif losses.describe(name).pairs:
        good = torch.tensor([0])
        with pytest.raises(ValueError, match="negatives must be"):
            loss(x, y, (good, good, torch.tensor([12])))
        with pytest.raises(ValueError, match=r"3 .triplets. or 4 .pairs."):
            loss(x, y, (good, good))


@pytest.mark.parametrize("name", losses.batch_names())
def test_hyper_parameters_are_checked_by_name(name: str) -> None:
    formula = losses.describe(name)
    for key, parameter in formula.parameters.items():
        assert parameter.help
        assert formula.resolve({})[key] == formula.defaults[key] == parameter.check(key, formula.defaults[key])
        with pytest.raises(ValueError, match=f"{name}: {key}"):
            formula.resolve({key: "no such option" if isinstance(parameter, Choice) else math.nan})
    assert any(ch.isdigit() for ch in formula.source), "a source must contain a year"
