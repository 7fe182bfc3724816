"""Overlaps of hulls compared with golden/losses.json, linear and quadratic programmes, and their invariances."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize
from scipy.spatial import ConvexHull, HalfspaceIntersection

from dmlcore.geometry.hulls import (
    active,
    area,
    class_histograms,
    histogram_intersections,
    hull,
    hull_separation,
    intersection,
    iou,
    members,
    overlaps,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "losses.json").read_text())["hull_overlap"]
SQUARE = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]])
RIGHT, UP = np.eye(2)
SHARES = ("hull_iou", "histogram_intersection", "active_jaccard", "membership_rate")
seeds = st.integers(0, 10_000)


def cloud(seed: int, n: int = 8, dim: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, dim))


def feasible(point, corners) -> bool:
    """Solve the membership programme directly: weights >= 0 with sum 1 that give the point."""
    system = np.vstack([np.asarray(corners).T, np.ones(len(corners))])
    return linprog(np.zeros(len(corners)), A_eq=system, b_eq=[*point, 1.0], method="highs").status == 0


def test_golden_case():
    one, two = hull(GOLDEN["A"]), hull(GOLDEN["B"])
    assert area(one) == pytest.approx(GOLDEN["area_A"], rel=1e-9)
    assert area(two) == pytest.approx(GOLDEN["area_B"], rel=1e-9)
    assert area(intersection(one, two)) == pytest.approx(GOLDEN["area_intersection"], rel=1e-9)
    assert iou(one, two) == pytest.approx(GOLDEN["iou"], rel=1e-9)
    shares = np.array([GOLDEN["hist_a"], GOLDEN["hist_b"]])
    assert histogram_intersections(shares)[0, 1] == pytest.approx(GOLDEN["histogram_intersection"], rel=1e-9)
    found = overlaps(cloud(0, shares.shape[1]), shares, [0, 1])
    assert found.mean("active_jaccard") == pytest.approx(GOLDEN["active_jaccard"], rel=1e-9)


def test_class_histograms_are_means_in_the_order_of_the_labels():
    classes, means = class_histograms([[1, 0], [0, 1], [0.5, 0.5]], [7, 2, 7])
    assert classes.tolist() == [2, 7]
    np.testing.assert_allclose(means, [[0, 1], [0.75, 0.25]])


def test_a_stray_feature_activates_only_without_a_threshold():
    h = [0.989, 0.009, 0.002]
    assert active(h).tolist() == [True, False, False]  # tau = 1/30
    assert active(h, 0.0).tolist() == [True, True, True]
    with pytest.raises(ValueError, match="tau"):
        active(h, -0.1)


def test_points_on_a_line_have_a_hull_without_area():
    line = np.linspace(0, 1, 5)[:, None] * [1.0, 2.0]
    assert hull(line).tolist() == [[0, 0], [1, 2]]
    assert hull([[3.0, 4.0]] * 4).tolist() == [[3, 4]]
    assert hull(np.empty((0, 2))).shape == (0, 2)
    assert area(hull(line)) == 0
    assert iou(hull(line), hull(SQUARE)) == 0
    assert hull_separation(line, SQUARE) == 0  # they have all points in common


def test_hulls_at_known_distances():
    assert hull_separation(SQUARE, SQUARE + RIGHT * 3) == pytest.approx(2.0, abs=1e-12)
    assert hull_separation(SQUARE, SQUARE + 2) == pytest.approx(2**0.5, abs=1e-12)
    assert hull_separation(SQUARE, SQUARE + RIGHT + UP / 2) == 0  # they touch
    assert hull_separation(SQUARE, SQUARE + RIGHT * (1 + 1e-6)) == pytest.approx(1e-6, rel=1e-6)
    assert hull_separation(SQUARE, np.empty((0, 2))) == np.inf


@given(seeds, st.integers(2, 7), st.integers(2, 7), st.integers(2, 5))
@settings(max_examples=40)
def test_separation_is_the_quadratic_programme_and_symmetric(seed, n, k, dim):
    a, b = cloud(seed, n, dim), cloud(seed + 1, k, dim) + np.eye(dim)[0] * 2.5
    found = hull_separation(a, b)
    assert found == pytest.approx(hull_separation(b, a), abs=1e-9)

    def gap(w):
        return float(((w[:n] @ a - w[n:] @ b) ** 2).sum())

    sums = [{"type": "eq", "fun": lambda w: w[:n].sum() - 1}, {"type": "eq", "fun": lambda w: w[n:].sum() - 1}]
    start = np.concatenate([np.full(n, 1 / n), np.full(k, 1 / k)])
    rival = minimize(gap, start, method="SLSQP", bounds=[(0, 1)] * (n + k), constraints=sums, options={"ftol": 1e-14})
    normal = rival.x[:n] @ a - rival.x[n:] @ b
    margin = (a @ normal).min() - (b @ normal).max()  # a lower bound of the distance from a separating plane
    assert margin / np.linalg.norm(normal) - 1e-9 <= found <= np.sqrt(rival.fun) + 1e-9


@given(seeds, st.integers(1, 9), st.integers(1, 4))
@settings(max_examples=40)
def test_members_solve_the_feasibility_programme(seed, k, dim):
    corners, points = cloud(seed, k, dim), cloud(seed + 1, 6, dim) * 0.7
    assert members(points, corners).tolist() == [feasible(p, corners) for p in points]
    assert members(corners, corners).all()
    assert members(corners.mean(0)[None], corners).all()


@given(seeds, st.floats(-5, 5), st.floats(0.05, 20), st.floats(0, 6.3))
@settings(max_examples=60)
def test_overlap_keeps_its_value_under_shift_scale_turn_and_exchange(seed, shift, scale, angle):
    a, b = cloud(seed), cloud(seed + 1) + 0.8
    shared, separation = iou(hull(a), hull(b)), hull_separation(a, b)
    assert 0 <= shared <= 1
    assert shared == 0 or separation == 0
    turn = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    moved = a @ turn.T + shift, b @ turn.T + shift
    assert iou(*map(hull, moved)) == pytest.approx(shared, abs=1e-9)
    assert hull_separation(*moved) == pytest.approx(scale * separation, abs=1e-8 * scale)
    assert iou(hull(b), hull(a)) == pytest.approx(shared, abs=1e-9)


@given(seeds)
@settings(max_examples=40)
def test_the_shared_area_is_that_of_the_half_planes(seed):
    one, two = hull(cloud(seed)), hull(cloud(seed + 1) * 0.8 + 0.3)
    shared = area(intersection(one, two))
    if shared > 1e-6:
        planes = np.concatenate([ConvexHull(one).equations, ConvexHull(two).equations])
        rival = HalfspaceIntersection(planes, intersection(one, two).mean(0))
        assert shared == pytest.approx(ConvexHull(rival.intersections).volume, abs=1e-9)
    assert 0 <= shared <= min(area(one), area(two)) + 1e-9
    assert iou(one, one) == pytest.approx(1.0, abs=1e-9)


@given(seeds, st.integers(2, 4), st.integers(2, 3))
@settings(max_examples=20)
def test_all_measures_in_any_dimension(seed, count, dim):
    random = np.random.default_rng(seed)
    prototypes, labels = random.normal(size=(9, dim)), np.repeat(np.arange(count), 5)
    histograms = random.dirichlet(np.full(9, 0.2), len(labels))
    found = overlaps(prototypes, histograms, labels, histograms @ prototypes)
    assert 0 <= found.mean("histogram_intersection") <= 1
    assert 0 <= found.mean("active_jaccard") <= 1
    assert found.mean("hull_separation") >= 0
    assert 0 <= found.mean("membership_rate") <= 1
    assert (found.mean("hull_iou") is None) == (dim != 2)
    for name, table in found.pairs.items():
        assert np.isnan(np.diag(table)).all()
        assert name == "membership_rate" or np.array_equal(table, table.T, equal_nan=True)
    order = random.permutation(len(labels))
    again = overlaps(prototypes, histograms[order], labels[order], (histograms @ prototypes)[order])
    assert again.mean("histogram_intersection") == pytest.approx(found.mean("histogram_intersection"))
    assert again.mean("membership_rate") == pytest.approx(found.mean("membership_rate"))


def test_separate_classes_overlap_nowhere_and_equal_ones_everywhere():
    prototypes = np.concatenate([SQUARE, SQUARE + 5])
    apart = np.repeat([[0.25] * 4 + [0] * 4, [0] * 4 + [0.25] * 4], 3, axis=0)
    labels = np.repeat([0, 1], 3)
    found = overlaps(prototypes, apart, labels, apart @ prototypes)
    assert [found.mean(name) for name in SHARES] == [0] * 4
    assert found.mean("hull_separation") == pytest.approx(32**0.5)
    same = overlaps(prototypes, apart[[0, 0, 0, 0, 0, 0]], labels, apart[[0] * 6] @ prototypes)
    assert [same.mean(name) for name in SHARES] == [1] * 4
    assert same.mean("hull_separation") == 0


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="at least two classes"):
        overlaps(SQUARE, np.eye(4), [0] * 4)
    with pytest.raises(ValueError, match="4 columns, one per prototype"):
        overlaps(SQUARE, np.eye(3), [0, 1, 2])
    with pytest.raises(ValueError, match="labels must have shape"):
        class_histograms(np.eye(3), [0, 1])
    with pytest.raises(ValueError, match=r"embeddings must have shape \(4, 2\)"):
        overlaps(SQUARE, np.eye(4), [0, 0, 1, 1], np.zeros((4, 3)))
