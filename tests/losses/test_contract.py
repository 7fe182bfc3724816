"""Contract of every triplet loss of the catalogue; no loss is named here."""

from __future__ import annotations

import itertools
import math
import pickle

import pytest
import torch

from dmlcore import losses
from dmlcore.catalogue import Choice, Slider
from dmlcore.geometry import Triplet, forces, scan
from tests.members import in_a_case_each, note_member

REDUCTIONS = losses.REDUCTIONS


def settings(name: str) -> list[dict]:
    """Return the default, both slider ends (one slider at a time) and every choice, with and without an upper clamp."""
    found: list[dict] = [{}]
    for key, parameter in losses.formula(name).parameters.items():
        if isinstance(parameter, Choice):
            found += [{key: option} for option in parameter.options]
        else:
            found += [{key: parameter.low}, {key: parameter.high}]
    return found


every_loss = pytest.mark.parametrize("name", losses.names())
every_setting = in_a_case_each("hyper", {name: settings(name) for name in losses.names()})


LABELS = 4, 4, 4, 4, 7, 7, 7, 2, 2, 2, 2, 9, -3  # unequal classes, two of them singletons


def batch(dtype=torch.float64, dim=5, seed=0, labels=LABELS):
    generator = torch.Generator().manual_seed(seed)
    embeddings = torch.randn(len(labels), dim, generator=generator, dtype=torch.float64).to(dtype)
    labels = torch.tensor(labels)
    order = torch.randperm(len(labels), generator=generator)
    return embeddings[order], labels[order]


def list_triplets(labels):
    y = labels.tolist()
    return [(a, p, n) for a, p, n in itertools.product(range(len(y)), repeat=3) if a != p and y[a] == y[p] != y[n]]


def energies(loss, embeddings, labels):
    """Return the energies of manually listed triplets, evaluated one by one, as the oracle."""
    return loss.raw(*embeddings[torch.tensor(list_triplets(labels))].unbind(1))


def reduced(loss, raws, reduction, labels):
    if reduction == "mean_raw":
        return raws.mean()
    if reduction == "entangled":
        logs = {}
        for (a, p, _), raw in zip(list_triplets(labels), raws, strict=True):
            logs[a, p] = torch.logaddexp(logs.get((a, p), torch.zeros_like(raw)), raw)
        return sum(logs.values()) / len(logs)
    kept = torch.where((raws > 0) & (raws < loss.m2), raws, raws.detach().clamp(0, loss.m2))
    return kept.sum() / (len(kept) if reduction == "mean_valid" else max(1, (kept > 0).sum()))


@every_setting
def test_batch_equals_triplets_listed_by_hand(name, hyper):
    """Compare the values of each reduction, and the gradients of a mixture of all in one backward pass."""
    embeddings, labels = batch()
    x, y = (embeddings.clone().requires_grad_() for _ in range(2))
    raws = energies(losses.create(name, **hyper), y, labels)
    values, expected = [], []
    for reduction in REDUCTIONS:
        with note_member(reduction):
            loss = losses.create(name, reduction=reduction, **hyper)
            values.append(loss(x, labels))
            expected.append(reduced(loss, raws, reduction, labels))
            torch.testing.assert_close(values[-1], expected[-1], rtol=1e-11, atol=1e-12)
    shares = range(2, 2 + len(REDUCTIONS))
    gradient, expected_gradient = (
        torch.autograd.grad(sum(share * value for share, value in zip(shares, each, strict=True)), at)[0]
        for each, at in ((values, x), (expected, y))
    )
    torch.testing.assert_close(gradient, expected_gradient, rtol=1e-9, atol=1e-11)


@every_setting
def test_what_may_be_skipped_is_declared(name, hyper):
    """Check `symmetric` and `separable`: a wrong True makes the loss wrong, a wrong False makes it slow."""
    loss = losses.create(name, **hyper)
    a, p, n = torch.randn(3, 400, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    swapped = torch.allclose(loss.raw(a, p, n), loss.raw(p, a, n), rtol=1e-9, atol=1e-9)
    assert swapped is loss.formula.symmetric, f"write symmetric={swapped} above {name}"
    separable = is_separable(loss.raw_of)
    assert separable is loss.formula.separable, f"write separable={separable} above {name}"
    differences = (a - p).norm(dim=-1) - (a - n).norm(dim=-1)
    difference = torch.allclose(loss.core(a, p, n), differences, rtol=1e-9, atol=1e-9)
    assert difference is loss.formula.difference, f"write difference={difference} above {name}"
    assert loss.difference_window == ((loss.margin, loss.m2) if difference else None)


def is_separable(energy):
    """Return True if the energy is A(d_ap) + S(d_ap) B(d_an) and decreases with d_an, on distances of 0..2."""
    grid = torch.linspace(0, 2, 41, dtype=torch.float64)
    asked = {}

    def edge(pair):
        asked[pair] = {"ap": grid[:, None], "an": grid}.get(pair, grid)
        return asked[pair]

    found = energy(Triplet(edge, lambda vertex: edge(2 * vertex)))
    if asked.keys() != {"ap", "an"} or not found.isfinite().all():
        return False
    beyond = found - found[:, :1]
    rank_one = torch.allclose(beyond * beyond[:1, -1:], beyond[:, -1:] * beyond[:1], rtol=1e-9, atol=0.0)
    return rank_one and bool((found.diff(dim=1) < 0).all())


@every_setting
def test_autograd_equals_central_differences(name, hyper):
    embeddings, labels = batch(dim=3)
    loss = losses.create(name, reduction="mean_raw", **hyper)
    x = embeddings.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(x, labels), x)
    step, generator = 1e-5, torch.Generator().manual_seed(2)
    for _ in range(2):  # along a direction that changes all entries
        along = torch.randn(x.shape, generator=generator, dtype=x.dtype)
        shift = step * along
        numeric = (loss(embeddings + shift, labels) - loss(embeddings - shift, labels)) / (2 * step)
        assert (gradient * along).sum().item() == pytest.approx(numeric.item(), rel=1e-6, abs=1e-7)


@every_loss
def test_permutation_of_the_batch_changes_nothing(name):
    for reduction in REDUCTIONS:
        with note_member(reduction):
            embeddings, labels = batch()
            loss = losses.create(name, reduction=reduction)
            order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(1))
            x, y = embeddings.clone().requires_grad_(), embeddings[order].requires_grad_()
            value, permuted = loss(x, labels), loss(y, labels[order])
            torch.testing.assert_close(value, permuted, rtol=1e-12, atol=1e-13)
            torch.testing.assert_close(
                torch.autograd.grad(value, x)[0][order], torch.autograd.grad(permuted, y)[0], rtol=1e-10, atol=1e-12
            )


@every_loss
def test_a_batch_without_triplets_gives_zero_with_zero_gradients(name):
    for reduction, labels in itertools.product(REDUCTIONS, ([5] * 6, [0, 1, 2, 3, 4, 5])):
        with note_member(f"{reduction}, {labels}"):
            x = torch.randn(6, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
            value = losses.create(name, reduction=reduction)(x, torch.tensor(labels))
            value.backward()
            assert value.item() == 0
            assert x.grad is not None
            assert torch.equal(x.grad, torch.zeros_like(x))


@every_loss
def test_an_empty_indices_tuple_gives_zero_with_zero_gradients(name):
    embeddings, labels = batch()
    x = embeddings.clone().requires_grad_()
    none = torch.empty(0, dtype=torch.int64)
    value = losses.create(name)(x, labels, (none, none, none))
    value.backward()
    assert value.item() == 0
    assert torch.equal(x.grad, torch.zeros_like(x))


@every_loss
def test_indices_tuple_of_all_triplets_equals_none(name):
    for reduction in REDUCTIONS:
        with note_member(reduction):
            embeddings, labels = batch()
            same = labels[:, None] == labels[None]
            a, p, n = ((same & ~torch.eye(len(labels), dtype=torch.bool))[:, :, None] & ~same[:, None, :]).nonzero(
                as_tuple=True
            )
            pairs = (same & ~torch.eye(len(labels), dtype=torch.bool)).nonzero(as_tuple=True) + (~same).nonzero(
                as_tuple=True
            )
            loss = losses.create(name, reduction=reduction)
            results = []
            for indices in (None, (a, p, n), pairs):
                x = embeddings.clone().requires_grad_()
                value = loss(x, labels, indices)
                results.append((value.detach(), torch.autograd.grad(value, x)[0], loss.counts))
            for value, gradient, counts in results[1:]:
                torch.testing.assert_close(value, results[0][0], rtol=1e-12, atol=1e-13)
                torch.testing.assert_close(gradient, results[0][1], rtol=1e-10, atol=1e-12)
                assert counts == results[0][2]


@every_loss
def test_coincident_points_stay_finite(name):
    for dtype, reduction in itertools.product((torch.float32, torch.float64), REDUCTIONS):
        with note_member(f"{dtype}, {reduction}"):
            embeddings, labels = batch(dtype)
            embeddings[1:4] = embeddings[0]
            embeddings[9] = embeddings[5]
            for points in (embeddings, torch.zeros_like(embeddings), torch.ones_like(embeddings)):
                x = points.clone().requires_grad_()
                value = losses.create(name, reduction=reduction)(x, labels)
                value.backward()
                assert value.dtype == dtype
                assert torch.isfinite(value)
                assert torch.isfinite(x.grad).all()


@every_setting
def test_float32_follows_float64(name, hyper):
    embeddings, labels = batch()
    x, y = embeddings.clone().requires_grad_(), embeddings.float().requires_grad_()
    loss = losses.create(name, reduction="mean_raw", **hyper)
    exact, single = loss(x, labels), loss(y, labels)
    torch.testing.assert_close(single.double(), exact, rtol=2e-5, atol=2e-5)
    (expected,), (gradient,) = torch.autograd.grad(exact, x), torch.autograd.grad(single, y)
    assert (gradient.double() - expected).norm() <= 1e-4 * expected.norm() + 1e-7


@every_loss
def test_points_broadcast_and_the_field_is_one_call(name):
    loss = losses.create(name)
    a, p, n = torch.tensor([[0.0, 0.0], [0.5, 0.0], [0.3, 0.9]], dtype=torch.float64)
    x, y = torch.linspace(-1, 1, 7, dtype=torch.float64), torch.linspace(-1, 1, 5, dtype=torch.float64)
    for probe in ("anchor", "positive", "negative"):
        field = scan(loss, a, p, n, probe=probe, x=x, y=y)
        assert field.energy.shape == field.active.shape == (5, 7)
        assert field.force.shape == (5, 7, 2)
        at = torch.tensor([x[4], y[1]], dtype=torch.float64, requires_grad=True)
        single = loss.clamped(*({"anchor": a, "positive": p, "negative": n} | {probe: at}).values())
        assert field.energy[1, 4].item() == pytest.approx(single.item())
        gradient = torch.autograd.grad(single, at, allow_unused=True, materialize_grads=True)[0]
        torch.testing.assert_close(field.force[1, 4], -gradient)


@every_loss
def test_bad_points_are_named(name):
    loss = losses.create(name)
    good = torch.zeros(3, 2)
    for position, argument in enumerate(("anchor", "positive", "negative")):
        for bad in (torch.full((3, 2), math.nan), torch.full((3, 2), math.inf), torch.full((3, 2), 1e30)):
            points = [good, good, good]
            points[position] = bad
            with pytest.raises(ValueError, match=argument):
                loss.raw(*points)
            with pytest.raises(ValueError, match=argument):
                forces(loss, *points)
        points = [good, good, good]
        points[position] = torch.zeros(3, 2, dtype=torch.int64)
        with pytest.raises(TypeError, match=argument):
            loss.core(*points)
        with pytest.raises(TypeError, match=argument):
            forces(loss, *points)
    with pytest.raises(ValueError, match="negative"):
        loss.clamped(good, good, torch.zeros(3, 4))
    with pytest.raises(ValueError, match="broadcast"):
        loss.clamped(good, good, torch.zeros(5, 2))


BAD = (
    (torch.full((4, 2), math.nan), torch.zeros(4, dtype=torch.int64), ValueError, "embeddings"),
    (torch.zeros(4, 2, 3), torch.zeros(4, dtype=torch.int64), ValueError, "embeddings"),
    (torch.zeros(4), torch.zeros(4, dtype=torch.int64), ValueError, "embeddings"),
    (torch.zeros(4, 2, dtype=torch.int64), torch.zeros(4, dtype=torch.int64), TypeError, "embeddings"),
    (torch.zeros(4, 2), torch.zeros(3, dtype=torch.int64), ValueError, "labels"),
    (torch.zeros(4, 2), torch.zeros(4), TypeError, "labels"),
    (torch.zeros(4, 2), [0, 0, 1, 1], TypeError, "labels"),
)


@every_loss
def test_bad_batches_are_named(name):
    for embeddings, labels, error, argument in BAD:
        with note_member((embeddings, labels)), pytest.raises(error, match=argument):
            losses.create(name)(embeddings, labels)


@every_loss
def test_bad_indices_are_named(name):
    embeddings, labels = batch()
    loss = losses.create(name)
    good, bad = torch.tensor([0]), torch.tensor([13])
    with pytest.raises(ValueError, match="negatives"):
        loss(embeddings, labels, (good, good, bad))
    with pytest.raises(ValueError, match="indices_tuple"):
        loss(embeddings, labels, (good, good))
    with pytest.raises(ValueError, match="lengths"):
        loss(embeddings, labels, (good, good, torch.tensor([1, 2])))


@every_loss
def test_bad_hyper_parameters_are_named(name):
    with pytest.raises(TypeError, match="no_such_parameter"):
        losses.create(name, no_such_parameter=1)
    with pytest.raises(ValueError, match="reduction"):
        losses.create(name, reduction="sum")
    for key, parameter in losses.formula(name).parameters.items():
        bad, why = (math.nan, f"{key} must be finite") if isinstance(parameter, Slider) else ("no such option", key)
        with pytest.raises(ValueError, match=why):
            losses.create(name, **{key: bad})
    with pytest.raises(TypeError, match="no_such_parameter"):
        losses.formula(name)(torch.zeros(2), torch.zeros(2), torch.zeros(2), no_such_parameter=1)


@every_setting
def test_a_loss_survives_pickling(name, hyper):
    """Pickle a loss, as data loader workers, spawned processes and torch.save do."""
    embeddings, labels = batch()
    loss = losses.create(name, **hyper)
    again = pickle.loads(pickle.dumps(loss))
    assert again.formula is loss.formula
    assert torch.equal(again(embeddings, labels), loss(embeddings, labels))


@every_loss
def test_the_clamp_window_is_never_empty(name):
    """Check that m2 > 0 for any margin; otherwise the clamp to [0, m2] would be negative."""
    for key in ("m2", losses.formula(name).clamp.to):
        if key in losses.formula(name).parameters:
            for value in (0.0, -1.0):
                with pytest.raises(ValueError, match=key):
                    losses.create(name, **{key: value})


@every_loss
def test_the_pure_function_is_the_core(name):
    formula = losses.formula(name)
    a, p, n = torch.tensor([[0.1, 0.2], [0.5, 0.0], [0.3, 0.9]], dtype=torch.float64)
    assert torch.equal(formula(a, p, n), losses.create(name).core(a, p, n))


@every_loss
def test_each_loss_is_documented(name):
    formula = losses.formula(name)
    assert formula.title
    assert formula.sentence.endswith(".")
    assert any(ch.isdigit() for ch in formula.source), "a source must contain a year"
    assert "d_" in formula.latex or r"^\top" in formula.latex
    assert formula.source in formula.__doc__
    assert formula.core.__doc__ == formula.__doc__, "`help` of the function must match its entry"
    for key in formula.parameters:
        assert f"{key} = {formula.defaults[key]} (" in formula.__doc__
    for key, parameter in formula.sliders.items():
        assert parameter.help, key
        parameter.check(key, formula.defaults[key])


def test_an_unknown_loss_lists_the_known_ones():
    with pytest.raises(KeyError, match=losses.names()[0]):
        losses.create("no such loss")
