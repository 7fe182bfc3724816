"""Equality of losses: the identities of triplet-losses.md section 3, and pairs that only look alike."""

from __future__ import annotations

import math

import pytest

from dmlcore import losses
from dmlcore.loss_analysis.equivalence import same_loss
from dmlcore.losses import create
from tests.members import in_one_case


def charges(s, r, rho, m1=0.0):
    return create("distance_sensitive", s=s, r=r, rho=rho, m1=m1, m2=None)


@in_one_case(rho=[0.3, 0.6, math.pi / 4, 1.2], dim=[2, 128])
def test_angular_is_distance_sensitive(dim, rho):
    factor = 2 / math.cos(rho) ** 2
    found = same_loss(create("angular", rho=rho, m=0.5), charges(1, -1, 2 * math.sin(rho) ** 2, 0.5 / factor), dim=dim)
    assert found.same, found.verdict
    assert found.factor == pytest.approx(factor, rel=1e-12)
    assert found.shift == pytest.approx(0, abs=1e-9)
    assert "same triplets" in found.verdict


def test_angular_at_45_degrees_is_four_times_entangle():
    found = same_loss(create("angular", rho=math.pi / 4), create("entangle", m=0.0))
    assert (found.same, found.factor) == (True, pytest.approx(4, rel=1e-12))
    assert "is 4 times that of Entangled" in found.verdict


@pytest.mark.parametrize("dim", [2, 128])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (create("entangle", m=0.7), charges(1, -1, 1, 0.7)),
        (create("modified_entangle", rho=1.3, m=0.7), charges(0, 0, 1.3, 0.7)),
    ],
)
def test_entangle_and_modified_are_distance_sensitive(dim, first, second):
    found = same_loss(first, second, dim=dim)
    assert found.same
    assert (found.factor, found.shift) == (pytest.approx(1, rel=1e-12), pytest.approx(0, abs=1e-10))


@pytest.mark.parametrize("dim", [2, 128])
@pytest.mark.parametrize(
    ("first", "second", "factor"),
    [
        (create("ranking", m=0.3), create("modified_entangle", rho=0.5, m=0.3), 1),
        (create("facenet", m=0.3), charges(1, -1, 0.5, 0.15), 2),
    ],
)
def test_sums_over_both_orders(dim, first, second, factor):
    found = same_loss(first, second, dim=dim, symmetrised=True)
    assert found.same
    assert (found.factor, found.shift) == (pytest.approx(factor, rel=1e-12), pytest.approx(0, abs=1e-9))
    assert "acts on each order by itself" in found.verdict
    alone = same_loss(first, second, dim=dim)
    assert not alone.same
    assert alone.largest > 0.1


@in_one_case(case=[("printed", 2.5), ("rule", 1.5)], dim=[2, 3, 128])
def test_location_aware_is_entangle_with_another_margin_on_the_sphere(dim, case):
    variant, shift = case
    first, second = create("location_aware", variant=variant, m=0.2), create("entangle", m=0.2)
    found = same_loss(first, second, space="sphere", dim=dim)
    assert found.same
    assert (found.factor, found.shift) == (pytest.approx(1, rel=1e-12), pytest.approx(shift, rel=1e-12))
    assert f"is {shift} larger" in found.verdict
    assert not same_loss(first, second, space="plane", dim=dim).same


def test_both_location_aware_variants_agree_on_the_sphere_only():
    first, second = (create("location_aware", variant=v) for v in ("printed", "rule"))
    on_sphere, in_plane = (same_loss(first, second, space=space) for space in ("sphere", "plane"))
    assert (on_sphere.same, on_sphere.shift) == (True, pytest.approx(1.0))
    assert (in_plane.same, in_plane.shift) == (False, None)


@in_one_case(name=losses.names())
def test_a_loss_is_itself_whatever_its_margin(name):
    loss = create(name)
    found = same_loss(loss, loss)
    assert (found.same, found.factor, found.shift) == (True, pytest.approx(1, rel=1e-12), pytest.approx(0, abs=1e-12))


@pytest.mark.parametrize("space", ["plane", "sphere"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (create("npairs"), create("facenet")),
        (create("ranking"), create("facenet")),
        (create("ranking"), charges(1, -1, 1)),  # the thesis calls them the same up to size (erratum 39)
        (create("lifted"), create("modified_entangle", rho=0.5)),
        (create("angular", rho=0.6), create("angular", rho=0.61)),
        (create("hoffer"), create("ranking")),
        (charges(1, 2, 1), charges(1, 2.001, 1)),
        (create("moving", rho=1e-6), create("facenet")),
    ],
)
@pytest.mark.parametrize("symmetrised", [False, True])
def test_losses_that_differ(space, first, second, symmetrised):
    found = same_loss(first, second, space=space, symmetrised=symmetrised)
    assert not found.same
    assert found.largest > 1e-8
    assert found.verdict.startswith("Not the same")


def test_the_cosine_of_the_erratum():
    """Erratum 39: the pair the thesis prints as the same has a cosine well below 1."""
    assert same_loss(create("ranking"), charges(1, -1, 1), symmetrised=True).cosine < 0.99


def test_the_factor_is_the_least_squares_one_and_not_symmetric():
    first, second = create("ranking"), create("facenet")
    there, back = same_loss(first, second), same_loss(second, first)
    assert there.factor * back.factor == pytest.approx(there.cosine**2, rel=1e-9)
    assert there.cosine == pytest.approx(back.cosine, rel=1e-12)


@in_one_case(case=[("space", "torus"), ("dim", 1)])
def test_bad_input_is_named(case):
    name, value = case
    with pytest.raises(ValueError, match=name):
        same_loss(create("ranking"), create("facenet"), **{name: value})
