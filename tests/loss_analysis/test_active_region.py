"""Active regions: golden areas, published figures, boundaries, grid counts, contours and edge cases."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dmlcore import losses
from dmlcore.catalogue import Slider
from dmlcore.geometry import Triplet, margin_from_normalised
from dmlcore.loss_analysis import active_region as regions
from dmlcore.loss_analysis.active_region import CLOSED_FORMS, active_region
from dmlcore.loss_analysis.level_sets import LOGARITHM, PlanePair, cassini, two_distances
from dmlcore.losses.engine.formula import LOSSES, Margin, triplet_loss
from tests.members import in_one_case

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "triplet_losses.json").read_text())["closed_forms"]
BALANCED = 12 / 7
ORIGIN = (0.0, 0.0)


def charges(s, r, rho, m1, m2=None):
    return losses.create("distance_sensitive", s=s, r=r, rho=rho, m1=m1, m2=m2)


def raw_of(loss, a, p, n):
    a, p, n = (torch.as_tensor(np.asarray(x), dtype=torch.float64) for x in (a, p, n))
    return loss.raw(a, p, n).expand(n.shape[:-1]).numpy()


@pytest.mark.parametrize("case", GOLDEN["active_area_2d"], ids=lambda c: f"{c['loss']}-{c['params']}")
def test_golden_areas(case):
    found = active_region(losses.create(case["loss"], **case["params"]), ORIGIN, (case["d_ap"], 0.0))
    assert found.area == pytest.approx(case["area"], rel=2e-11)
    assert found.closed_form


def test_moving_roots_of_unit_vectors():
    half = math.asin(0.25)
    a, p = ((math.cos(x), math.sin(x)) for x in (-half, half))
    found = active_region(losses.create("moving", rho=0.3, m=0.2), a, p)
    assert found.shape == "shell about A, radii 0.1795 to 0.5628"
    assert found.area == pytest.approx(math.pi * (0.562793**2 - 0.179524**2), rel=5e-6)
    assert active_region(losses.create("moving", rho=5.0, m=0.0), a, p).shape == "empty"


def test_areas_of_the_errata():
    """Erratum 28: at equal normalised margin the area grows with r. Erratum 29: for r = -1 m1 does not change it."""
    areas = [
        active_region(charges(1, r, 1, margin_from_normalised(0.175, 1, r, 1)), ORIGIN, (0.5, 0.0)).area
        for r in (-1, 0, 1, 2, 3)
    ]
    assert areas == pytest.approx([2.317, 2.444, 2.568, 2.684, 2.790], abs=6e-4)  # those are grid counts
    for m1 in (2.5, 4.0, 8.0):
        found = active_region(charges(0, -1, BALANCED, m1, 2.0), ORIGIN, (0.5, 0.0))
        assert found.area == pytest.approx(2 * math.pi / BALANCED, rel=1e-12)


@in_one_case(step=[1e-3, -1e-3, 1e-6, -1e-6, 1e-10, -1e-10])
def test_regions_are_continuous_through_r_1(step):
    def region(r):
        return active_region(charges(1, r, 1, margin_from_normalised(0.2, 1, r, 1), 2.0), ORIGIN, (0.5, 0.0))

    assert region(1 + step).area == pytest.approx(region(1).area, rel=2 * abs(step) + 1e-8)


def test_location_aware_depends_on_the_origin():
    a, p = (0.8, 0.3), (1.1, -0.2)
    printed = active_region(losses.create("location_aware", m=0.1), a, p)
    assert printed.area == math.inf
    radius = math.sqrt(4 * (0.8 * 1.1 - 0.3 * 0.2) - 0.2)
    assert printed.shape == f"all but the disc about -(A+P), radius {radius:.4g}"
    window = active_region(losses.create("location_aware", m=0.1, m2=2.0), a, p)
    assert window.area == pytest.approx(2 * math.pi * 2.0, rel=1e-12)  # a ring: the upper clamp bounds it
    rule = active_region(losses.create("location_aware", variant="rule", m=0.1), a, p)
    assert rule.area == pytest.approx(2 * math.pi * (0.73 + 1.25 + 0.1), rel=1e-12)
    at_origin = active_region(losses.create("location_aware", m=0.1), ORIGIN, ORIGIN)
    assert (at_origin.shape, at_origin.area) == ("the whole plane", math.inf)


def _setting(name):
    """A loss with hyper-parameters within its sliders, and sometimes an upper clamp."""

    def value(parameter):
        if not isinstance(parameter, Slider):
            return st.sampled_from(parameter.options)
        if parameter.optional:
            return st.one_of(st.none(), st.floats(0.1, 50))
        return st.floats(parameter.low, parameter.high)

    parameters = losses.formula(name).parameters
    return st.builds(lambda **h: losses.create(name, **h), **{k: value(x) for k, x in parameters.items()})


COORDINATE = st.floats(-2, 2)
PAIRS = st.tuples(
    st.tuples(COORDINATE, COORDINATE), st.sampled_from([0.0, 1e-9, 1e-4, 0.1, 0.5, 2.0]), st.floats(0, 6.3)
)


@pytest.mark.parametrize("name", CLOSED_FORMS)
@given(data=st.data())
@settings(max_examples=15)
def test_areas_are_numbers_for_all_settings(name, data):
    loss = data.draw(_setting(name))
    a, d, angle = data.draw(PAIRS)
    p = (a[0] + d * math.cos(angle), a[1] + d * math.sin(angle))
    found = active_region(loss, a, p)
    assert found.closed_form
    assert found.area >= 0  # and not nan


AREAS = [  # bounded regions, with and without a hole, round, in two lobes, about the origin
    ("ranking", {"m": 0.3, "m2": 0.5}),
    ("facenet", {"m": 0.5}),
    ("facenet_mined", {"m": 0.4}),
    ("ratio", {"m": 0.5, "m2": 0.6}),
    ("angular", {"rho": 0.5, "m": 0.2, "m2": 0.3}),
    ("moving", {"rho": 0.2, "m": 0.6}),
    ("moving", {"rho": 0.2, "m": 0.9, "m2": 0.3}),
    ("lifted", {"m": 0.2, "m2": 0.5}),
    ("lifted", {"m": -0.4}),
    ("entangle", {"m": 0.4, "m2": 0.3}),
    ("location_aware", {"variant": "rule", "m": 0.2, "m2": 0.4}),
    ("location_aware", {"variant": "printed", "m": -0.6, "m2": 0.7}),
    ("modified_entangle", {"rho": 0.7, "m": 0.9, "m2": 0.4}),
    ("distance_sensitive", {"s": 1, "r": -1, "rho": 1.5, "m1": 1, "m2": 0.4}),
    ("distance_sensitive", {"s": 1, "r": -0.5, "rho": 1.5, "m1": 1.5, "m2": 0.5}),
    ("distance_sensitive", {"s": 0, "r": -2, "rho": 1.5, "m1": 0.5, "m2": 0.6}),
    ("distance_sensitive", {"s": 2, "r": 0.5, "rho": 0.8, "m1": 3, "m2": 0.3}),
    ("distance_sensitive", {"s": 2, "r": 0.5, "rho": 0.8, "m1": 2.3, "m2": None}),
    ("distance_sensitive", {"s": 1, "r": 1, "rho": 1, "m1": -0.3, "m2": 2}),
    ("distance_sensitive", {"s": 1, "r": 1, "rho": 1, "m1": -2.4, "m2": None}),
    ("distance_sensitive", {"s": 1, "r": 2, "rho": 1, "m1": -2.3, "m2": 5}),
    ("distance_sensitive", {"s": 1, "r": 3.5, "rho": 1, "m1": -2.3, "m2": 20}),
    ("distance_sensitive", {"s": -0.5, "r": 0, "rho": 1, "m1": 1, "m2": 0.6}),
    ("distance_sensitive", {"s": -1, "r": 0, "rho": 1, "m1": 2, "m2": 0.5}),
    ("distance_sensitive", {"s": -2, "r": -1, "rho": 1, "m1": 3, "m2": None}),
    ("distance_sensitive", {"s": -3, "r": 2, "rho": 1, "m1": -1, "m2": 5}),
]
# raw is 0 throughout the outside, so that contours of level 0 are not exact; the pair is closer than the core radius
FLAT_OUTSIDE = [
    ("potential", {"alpha": 1, "delta": 0.8}),
    ("potential", {"alpha": 3, "delta": 0.9, "m2": 5}),
    ("potential", {"alpha": 4, "delta": 0.9, "m2": 2e4}),  # the hole lies where the repulsion is continued
]
ANCHOR, POSITIVE = (0.4, 0.2), (0.9, 0.75)


@in_one_case(case=AREAS + FLAT_OUTSIDE)
def test_area_against_a_grid_count(case):
    name, hyper = case
    loss = losses.create(name, **hyper)
    found = active_region(loss, ANCHOR, POSITIVE)
    x = np.linspace(-8, 9, 170)
    raw = raw_of(loss, ANCHOR, POSITIVE, np.stack(np.meshgrid(x, x), axis=-1))
    row, column = np.nonzero((raw > 0) & (raw < loss.m2))  # the box around the region, with a cell on each side
    (x0, x1), (y0, y1) = ((x[i.min() - 2], x[i.max() + 2]) for i in (column, row))
    x, y = np.linspace(x0, x1, 600), np.linspace(y0, y1, 600)
    raw = raw_of(loss, ANCHOR, POSITIVE, np.stack(np.meshgrid(x, y), axis=-1))
    cell = (x[1] - x[0]) * (y[1] - y[0])
    assert found.area == pytest.approx(((raw > 0) & (raw < loss.m2)).sum() * cell, rel=5e-3)


@in_one_case(case=AREAS)
def test_contours_agree_with_the_closed_form(case, monkeypatch):
    name, hyper = case
    loss = losses.create(name, **hyper)
    exact = active_region(loss, ANCHOR, POSITIVE)
    with monkeypatch.context() as here:
        here.delitem(regions.CLOSED_FORMS, name)
        found = active_region(loss, ANCHOR, POSITIVE)
    assert (found.closed_form, found.latex) == (False, "")
    assert found.area == pytest.approx(exact.area, rel=1e-5)


@in_one_case(
    case=[
        ("hoffer", {}, math.inf),
        ("hoffer", {"m2": 0.2}, math.inf),
        ("npairs", {}, math.inf),
        ("npairs", {"m2": 0.8}, math.inf),
        ("potential", {"alpha": 2, "delta": 0.4}, math.inf),
        ("potential", {"alpha": 2, "delta": 0.4, "m2": 1.5}, math.inf),
        ("location_aware", {"m": 0.1}, math.inf),
        ("location_aware", {"m": 3.0}, math.inf),
        ("distance_sensitive", {"m1": 1.0}, math.inf),
        ("ranking", {"m": -3.0}, 0.0),
        ("distance_sensitive", {"m1": -6.0, "r": -1.0}, 0.0),
        ("npairs", {"m2": 0.1}, math.inf),
    ],
)
def test_contours_of_unbounded_and_empty_regions(case, monkeypatch):
    name, hyper, area = case
    loss = losses.create(name, **hyper)
    exact = active_region(loss, ANCHOR, POSITIVE)
    assert exact.area == area
    with monkeypatch.context() as here:
        here.delitem(regions.CLOSED_FORMS, name)
        found = active_region(loss, ANCHOR, POSITIVE)
    assert found.area == area


@pytest.fixture
def powered_ranking():
    """Return a loss without a closed form whose region is a disc."""

    with LOSSES.isolated():

        @triplet_loss(title="t", latex="x", source="s", sentence="s", margin=Margin(0.1, -0.5, 2.5))
        def powered_ranking(t: Triplet, *, q: Annotated[float, Slider(0.5, 4.0, "q", "power")] = 1.5):
            return t.d_ap**q - t.d_an**q

        yield powered_ranking


def test_a_new_loss_needs_no_line_here(powered_ranking):
    loss = losses.create("powered_ranking", q=3.0, m=0.2, m2=0.15)
    found = active_region(loss, ANCHOR, POSITIVE)
    d = math.dist(ANCHOR, POSITIVE)
    radii = [(d**3 + 0.2 - level) ** (1 / 3) for level in (0.0, 0.15)]
    assert found.area == pytest.approx(math.pi * (radii[0] ** 2 - radii[1] ** 2), rel=1e-6)
    assert not found.closed_form
    assert found.shape == "1 curve, contoured; hole: 1 curve, contoured"


@in_one_case(name=losses.names())
def test_anchor_on_positive(name):
    """a = p: two lobes become one disc; nothing is nan."""
    loss = losses.create(name, m2=0.7) if name != "facenet_mined" else losses.create(name)
    found = active_region(loss, ANCHOR, ANCHOR)
    assert not math.isnan(found.area)


@in_one_case(r=[-1, -0.5, 0, 0.5, 1, 2, 3])
def test_a_short_pair_is_the_limit_of_none(r):
    m1 = margin_from_normalised(0.4, 1, r, 1.2)
    areas = [active_region(charges(1, r, 1.2, m1, 0.9), ORIGIN, (d, 0.0)).area for d in (0.0, 1e-8, 1e-5)]
    assert areas[1:] == pytest.approx([areas[0]] * 2, rel=1e-8)


def test_tiny_lobes():
    """For small lobes, d_an = 1/(T - 1/d) about the anchor; below 1e-6, where the law is frozen, they are dropped."""
    found = active_region(charges(0, 2, 1, -1e4 - 0.5), ORIGIN, (0.5, 0.0))
    assert found.shape.startswith("two lobes")
    assert found.area == pytest.approx(2 * math.pi / (1e4 - 2) ** 2, rel=1e-7)
    assert active_region(charges(0, 2, 1, -1e7), ORIGIN, (0.5, 0.0)).shape == "empty"


@in_one_case(bound=[-12.0, -5.0, -2 * math.log(4) - 1e-6, -2 * math.log(4) + 1e-6, -1.0, 3.0])
def test_cassini_integrals_agree_with_quadrature(bound):
    pair = PlanePair(np.zeros(2), np.array([0.5, 0.0]))
    assert cassini(pair, bound).area == pytest.approx(two_distances(pair, LOGARITHM, bound, "").area, rel=1e-9)


def test_words_of_the_extremes():
    assert active_region(losses.create("hoffer"), ORIGIN, (1.0, 0.0)).shape == "the whole plane"
    assert active_region(losses.create("hoffer", m2=0.25), ORIGIN, (1.0, 0.0)).shape == (
        "the whole plane; hole: disc about A, radius 1"
    )
    everywhere = active_region(charges(1, 2, 1, 3.0, 0.5), ORIGIN, (1.0, 0.0))
    assert (everywhere.shape, everywhere.area) == ("empty: raw exceeds m2 everywhere", 0.0)
    assert (
        active_region(losses.create("npairs", m2=0.1), ORIGIN, (1.0, 0.0)).area == 0.0
    )  # a at the origin: raw = log 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((0.0, float("nan")), (1.0, 0.0)), "anchor"),
        ((ORIGIN, (1.0, 0.0, 0.0)), "positive"),
        ((ORIGIN, 3.0), "positive"),
    ],
)
def test_bad_points_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        active_region(losses.create("ranking"), *arguments)
