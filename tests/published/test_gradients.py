"""Executable counterparts of the LaTeX gradients compared with automatic differentiation, in 2 and 128 dimensions."""

from __future__ import annotations

import inspect

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dmlcore import losses
from dmlcore.catalogue import Slider
from dmlcore.geometry.field_table import edge_gradient
from dmlcore.geometry.forces import direction
from dmlcore.geometry.triplet import Edges
from dmlcore.published.gradients import CLOSED_FORMS
from tests.members import in_one_case


@st.composite
def settings_of(draw, name):
    """Return hyper-parameters of a loss within the ranges of their sliders."""
    formula = losses.formula(name)
    return {
        k: draw(st.floats(p.low, p.high)) if isinstance(p, Slider) else draw(st.sampled_from(p.options))
        for k, p in formula.parameters.items()
        if k in formula.own
    }


def triplets(dimension: int, seed: int) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(3, 16, dimension, dtype=torch.float64, generator=generator) / dimension**0.5)


def close(found: torch.Tensor, expected: torch.Tensor) -> bool:
    return bool(((found - expected).abs() <= 1e-9 * (1 + expected.abs())).all())


@pytest.mark.parametrize("name", CLOSED_FORMS)
@given(data=st.data())
@settings(max_examples=20)
def test_gradients_are_those_of_autograd(name, data):
    hyper, dimension = data.draw(settings_of(name)), data.draw(st.sampled_from([2, 128]))
    points = [x.requires_grad_() for x in triplets(dimension, data.draw(st.integers(0, 1000)))]
    expected = torch.autograd.grad(losses.formula(name)(*points, **hyper).sum(), points)
    for found, gradient in zip(CLOSED_FORMS[name].gradient(*points, **hyper), expected, strict=True):
        assert close(found.broadcast_to(gradient.shape).detach(), gradient)


@pytest.mark.parametrize("name", CLOSED_FORMS)
@given(data=st.data())
@settings(max_examples=20)
def test_edge_laws_are_the_derivatives_by_the_edges(name, data):
    hyper = data.draw(settings_of(name))
    a, p, n = triplets(3, data.draw(st.integers(0, 1000)))
    m2 = {} if losses.formula(name).clamp.to else {"m2": None}
    _, by = edge_gradient(losses.create(name, **hyper, **m2), Edges.of(a, p, n))
    laws = CLOSED_FORMS[name].laws(a, p, n, **hyper)
    for found, expected in zip(laws, (by.ap, -by.an, -by.pn), strict=True):
        assert close(found[..., 0], expected)


@in_one_case(name=CLOSED_FORMS)
def test_a_residual_is_named_exactly_where_there_is_one(name):
    form, (a, p, n) = CLOSED_FORMS[name], triplets(3, 0)
    hyper = {k: v for k, v in losses.formula(name).defaults.items() if k in losses.formula(name).own}
    pull, push_an, push_pn = form.laws(a, p, n, **hyper)
    along = (
        pull * direction(a, p) - push_an * direction(a, n),
        -pull * direction(a, p) - push_pn * direction(p, n),
        push_an * direction(a, n) + push_pn * direction(p, n),
    )
    rest = max(float((g - e).abs().max()) for g, e in zip(form.gradient(a, p, n, **hyper), along, strict=True))
    assert (rest > 1e-9) == bool(form.residual)


def test_every_loss_of_the_thesis_has_its_closed_form():
    thesis = [name for name in losses.names() if "Karaman 2021" in losses.formula(name).source]
    assert set(CLOSED_FORMS) == set(thesis)


@in_one_case(name=CLOSED_FORMS)
def test_the_twin_takes_the_hyper_parameters_of_the_loss(name):
    taken = inspect.signature(CLOSED_FORMS[name].gradient).parameters
    assert set(taken) - {"a", "p", "n"} == set(losses.formula(name).own)
