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


def level_errors(loss, a, p, curve, level):
    """Return |raw - level| at the points of a curve, relative to the energy and to the rounding of the points."""
    n = torch.tensor(curve, dtype=torch.float64, requires_grad=True)
    a, p = (torch.tensor(x, dtype=torch.float64) for x in (a, p))
    raw = loss.raw(a, p, n).expand(n.shape[:-1])
    (gradient,) = torch.autograd.grad(raw.sum(), n, allow_unused=True, materialize_grads=True)
    size = np.abs(curve).max()
    scale = 1 + abs(level) + abs(loss.margin) + gradient.norm(dim=-1) * (1 + size)
    scale = scale + 1e-6 * size**2  # npairs takes a.n from squared lengths: their rounding, far out
    return ((raw.detach() - level).abs() / scale).numpy()


@pytest.mark.parametrize("case", GOLDEN["active_area_2d"], ids=lambda c: f"{c['loss']}-{c['params']}")
def test_golden_areas(case):
    found = active_region(losses.create(case["loss"], **case["params"]), ORIGIN, (case["d_ap"], 0.0))
    assert found.area == pytest.approx(case["area"], rel=2e-11)
    assert found.closed_form


@pytest.mark.parametrize(("m1", "m2", "t"), [(-3.5, 20.0, 1.75), (-3.5, 0.1, 1.75)])
def test_where_the_boundary_of_r_2_meets_line_and_bisector(m1, m2, t):
    d = 0.5
    (curve,) = active_region(charges(0, 2, BALANCED, m1, m2), ORIGIN, (d, 0.0)).outer
    assert -curve[:, 0].min() == pytest.approx((2 - t * d + math.sqrt(t**2 * d**2 + 4)) / (2 * t), rel=1e-12)
    assert curve[:, 0].max() - d == pytest.approx(-curve[:, 0].min(), rel=1e-12)
    on_bisector = curve[np.abs(curve[:, 0] - d / 2) < 1e-12]
    assert np.abs(on_bisector[:, 1]) == pytest.approx(math.sqrt((2 / t) ** 2 - d**2 / 4), rel=1e-12)


def test_the_polar_form_of_r_3():
    t, c = 3.5, 0.25
    (curve,) = active_region(charges(0, 3, BALANCED, -3.5), ORIGIN, (2 * c, 0.0)).outer
    x, y = (curve - (c, 0.0)).T
    w, cos2 = x**2 + y**2, x**2 / (x**2 + y**2)
    polynomial = t * w**2 + (2 * t * c**2 - 4 * t * c**2 * cos2 - 2) * w + t * c**4 - 2 * c**2
    assert polynomial == pytest.approx(0, abs=1e-13)


def test_moving_roots_of_unit_vectors():
    half = math.asin(0.25)
    a, p = ((math.cos(x), math.sin(x)) for x in (-half, half))
    found = active_region(losses.create("moving", rho=0.3, m=0.2), a, p)
    radii = [np.linalg.norm(curve - a, axis=1) for curve in found.outer]
    assert radii[0] == pytest.approx(0.562793, abs=5e-7)
    assert radii[1] == pytest.approx(0.179524, abs=5e-7)
    assert found.area == pytest.approx(math.pi * (radii[0][0] ** 2 - radii[1][0] ** 2), rel=1e-12)
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
    radius2 = 4 * (0.8 * 1.1 - 0.3 * 0.2) - 0.2
    assert np.linalg.norm(printed.outer[0] + (1.9, 0.1), axis=1) == pytest.approx(math.sqrt(radius2), rel=1e-13)
    window = active_region(losses.create("location_aware", m=0.1, m2=2.0), a, p)
    assert window.area == pytest.approx(2 * math.pi * 2.0, rel=1e-12)  # a ring: the upper clamp bounds it
    rule = active_region(losses.create("location_aware", variant="rule", m=0.1), a, p)
    assert rule.area == pytest.approx(2 * math.pi * (0.73 + 1.25 + 0.1), rel=1e-12)
    at_origin = active_region(losses.create("location_aware", m=0.1), ORIGIN, ORIGIN)
    assert (at_origin.shape, at_origin.outer, at_origin.area) == ("the whole plane", [], math.inf)


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
def test_boundaries_lie_on_their_levels(name, data):
    loss = data.draw(_setting(name))
    a, d, angle = data.draw(PAIRS)
    p = (a[0] + d * math.cos(angle), a[1] + d * math.sin(angle))
    found = active_region(loss, a, p, points=64)
    assert found.closed_form
    assert found.area >= 0  # and not nan
    for level, curves in ((0.0, found.outer), (loss.m2, found.inner)):
        for curve in curves:
            assert curve.shape[1] == 2
            assert np.isfinite(curve).all()
            assert level_errors(loss, a, p, curve, level).max() < 1e-9


@pytest.mark.parametrize(
    ("loss", "a", "p"),
    [  # half of r: a value outside the range of the law has a square root; a line too far away to compute its square
        (losses.create("distance_sensitive", s=0.5, r=0.5, rho=0.5, m1=0.5), ORIGIN, (0.5, 0.0)),
        (losses.create("npairs", m2=1.0), (0.0, 2e-181), (0.0, 2e-181)),
    ],
    ids=["square root", "far line"],
)
def test_boundaries_where_a_law_has_no_inverse(loss, a, p):
    found = active_region(loss, a, p, points=64)
    for level, curves in ((0.0, found.outer), (loss.m2, found.inner)):
        assert all(level_errors(loss, a, p, curve, level).max() < 1e-9 for curve in curves)


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
]
ANCHOR, POSITIVE = (0.4, 0.2), (0.9, 0.75)


@in_one_case(case=AREAS)
def test_area_against_a_grid_count(case):
    name, hyper = case
    loss = losses.create(name, **hyper)
    found = active_region(loss, ANCHOR, POSITIVE)
    corners = np.concatenate(found.outer + found.inner)
    (x0, y0), (x1, y1) = corners.min(axis=0) - 0.05, corners.max(axis=0) + 0.05
    x, y = np.linspace(x0, x1, 600), np.linspace(y0, y1, 600)
    raw = raw_of(loss, ANCHOR, POSITIVE, np.stack(np.meshgrid(x, y), axis=-1))
    cell = (x[1] - x[0]) * (y[1] - y[0])
    assert found.area == pytest.approx(((raw > 0) & (raw < loss.m2)).sum() * cell, rel=3e-3)


@in_one_case(case=AREAS, exact=[True, False])
def test_curves_are_closed_and_run_in_order(case, exact, monkeypatch):
    """The polygons have the area of the region: points in any other order would cross."""
    name, hyper = case
    with monkeypatch.context() as here:
        if not exact:
            here.delitem(regions.CLOSED_FORMS, name)
        found = active_region(losses.create(name, **hyper), ANCHOR, POSITIVE, points=512)
    total = 0.0
    for curves, sign in ((found.outer, 1), (found.inner, -1)):
        for curve in curves:
            assert np.allclose(curve[0], curve[-1], atol=1e-12)
        areas = sorted((polygon_area(curve) for curve in curves), reverse=True)
        nested = name == "moving" and len(areas) > 1  # a shell: the smaller circle is its hole
        total += sign * (areas[0] - areas[1] if nested else sum(areas))
    assert abs(total) == pytest.approx(found.area, rel=2e-3)


def polygon_area(curve):
    (x, y) = (curve - curve[0]).T
    return abs(np.sum(x[:-1] * y[1:] - x[1:] * y[:-1])) / 2


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
    assert (len(found.outer), len(found.inner)) == (len(exact.outer), len(exact.inner))
    for level, curves in ((0.0, found.outer), (loss.m2, found.inner)):
        for curve in curves:
            assert level_errors(loss, ANCHOR, POSITIVE, curve, level).max() < 1e-9


@in_one_case(
    case=[
        ("hoffer", {}, math.inf),
        ("hoffer", {"m2": 0.2}, math.inf),
        ("npairs", {}, math.inf),
        ("npairs", {"m2": 0.8}, math.inf),
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
    assert bool(found.outer) == bool(exact.outer)
    assert bool(found.inner) == bool(exact.inner)


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
    for radius, (curve,) in zip(radii, (found.outer, found.inner), strict=True):
        assert np.linalg.norm(curve - ANCHOR, axis=1) == pytest.approx(radius, rel=1e-9)


@in_one_case(name=losses.names())
def test_anchor_on_positive(name):
    """a = p: two lobes become one disc; nothing is nan."""
    loss = losses.create(name, m2=0.7) if name != "facenet_mined" else losses.create(name)
    found = active_region(loss, ANCHOR, ANCHOR)
    assert not math.isnan(found.area)
    for level, curves in ((0.0, found.outer), (loss.m2, found.inner)):
        for curve in curves:
            assert level_errors(loss, ANCHOR, ANCHOR, curve, level).max() < 1e-9


@in_one_case(r=[-1, -0.5, 0, 0.5, 1, 2, 3])
def test_a_short_pair_is_the_limit_of_none(r):
    m1 = margin_from_normalised(0.4, 1, r, 1.2)
    areas = [active_region(charges(1, r, 1.2, m1, 0.9), ORIGIN, (d, 0.0)).area for d in (0.0, 1e-8, 1e-5)]
    assert areas[1:] == pytest.approx([areas[0]] * 2, rel=1e-8)


def test_tiny_lobes():
    """For small lobes, d_an = 1/(T - 1/d) about the anchor; below 1e-6, where the law is frozen, they are dropped."""
    found = active_region(charges(0, 2, 1, -1e4 - 0.5), ORIGIN, (0.5, 0.0))
    assert found.shape.startswith("two lobes")
    assert np.linalg.norm(found.outer[0], axis=1) == pytest.approx(1 / (1e4 - 2), rel=1e-7)
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
    assert active_region(losses.create("ratio", m=0.1, m2=1.0), ORIGIN, (1.0, 0.0)).inner == []


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


def test_too_few_points_are_refused():
    with pytest.raises(ValueError, match="points must be at least 8"):
        active_region(losses.create("ranking"), ORIGIN, (1.0, 0.0), points=4)
