"""Greedy k-centre and covering radii compared with the golden file and brute force."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import torch

import dmlcore
from dmlcore.geometry import average_covering_radius, covering, covering_radius, k_center

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "losses.json").read_text())
ROW, COLUMN = np.arange(14)[:, None], np.arange(3)
POINTS = np.sin(0.4 + 1.3 * ROW + 0.7 * COLUMN + 0.21 * ROW * COLUMN)


def covering_curve(points):
    """Return the radii for k = 1, ..., N, whose mean is the average covering radius of a class."""
    return covering._curves(covering._distances(points, points)[None])[0]


def test_golden_picks_and_radii():
    golden = GOLDEN["k_center"]
    existing = 0.5 * POINTS[:2]
    picks = k_center(POINTS, existing, golden["picks"])
    assert picks.tolist() == golden["selected"]
    radii = [covering_radius(POINTS, np.concatenate([existing, POINTS[picks[: i + 1]]])) for i in range(len(picks))]
    assert radii == pytest.approx(golden["radius_after_each"], rel=1e-12)
    empty = golden["empty_existing"]
    assert k_center(POINTS, None, 5).tolist() == empty["selected"]
    alone = [covering_radius(POINTS, POINTS[empty["selected"][: i + 1]]) for i in range(5)]
    assert alone == pytest.approx(empty["radius_after_each"], rel=1e-12)
    tie = golden["tie_case"]
    assert k_center(tie["points"], tie["existing"], tie["picks"]).tolist() == tie["selected"]


def test_golden_curve_and_averages():
    golden = GOLDEN["covering_radius"]
    assert covering_curve(POINTS) == pytest.approx(golden["curve"], rel=1e-12)
    assert covering_curve(POINTS).mean() == pytest.approx(golden["average"], rel=1e-12)
    assert average_covering_radius(POINTS, golden["labels"]) == pytest.approx(golden["mean_over_classes"], rel=1e-12)
    labels = np.array(golden["labels"])
    each = [average_covering_radius(POINTS[labels == label], labels[labels == label]) for label in np.unique(labels)]
    assert each == pytest.approx(golden["per_class_average"], rel=1e-12)
    assert covering_radius(POINTS, POINTS[:3]) == pytest.approx(golden["radius_of_first_three_points"], rel=1e-12)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_greedy_is_within_twice_the_best_of_all_choices(k):
    points = np.random.default_rng(k).normal(size=(9, 2))
    best = min(covering_radius(points, points[list(chosen)]) for chosen in itertools.combinations(range(9), k))
    for first in range(9):
        greedy = np.concatenate([[first], k_center(points, points[[first]], k - 1)]).astype(int)
        assert best <= covering_radius(points, points[greedy]) <= 2 * best


def test_each_pick_is_the_farthest_by_a_plain_loop():
    points = np.random.default_rng(0).normal(size=(20, 3))
    existing = [tuple(points[4])]
    for pick in k_center(points, existing, 12):
        distance = [min(np.linalg.norm(x - np.array(c)) for c in existing) for x in points]
        assert distance[pick] == max(distance)
        existing.append(tuple(points[pick]))


def test_the_average_is_that_of_each_class_alone_however_many_there_are():
    random = np.random.default_rng(1)
    labels = random.integers(0, 40, 3000)  # classes of different and of equal size
    points = random.normal(size=(3000, 2))
    expected = np.mean([covering_curve(points[labels == c]).mean() for c in np.unique(labels)])
    assert average_covering_radius(points, labels) == pytest.approx(expected, rel=1e-12)
    same = np.repeat(np.arange(600), 60)  # more classes than one block holds
    points = random.normal(size=(len(same), 1))
    expected = np.mean([covering_curve(points[same == c]).mean() for c in range(600)])
    assert average_covering_radius(points, same) == pytest.approx(expected, rel=1e-12)


def test_duplicates_are_all_picked_once():
    points = np.array([[0.0, 0.0]] * 3 + [[1.0, 0.0]] * 2)
    assert sorted(k_center(points, None, 5).tolist()) == [0, 1, 2, 3, 4]
    assert covering_curve(points).tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]


def test_contract_name_tensors_and_errors():
    picks = dmlcore.geometry.k_center(torch.tensor([[0.0], [1.0], [5.0]]), None, 2)
    assert picks.dtype == np.int64
    assert picks.tolist() == [0, 2]
    assert k_center([[0.0]], [], 0).tolist() == []
    for bad, name in (
        ((POINTS, None, 15), "k must"),
        ((POINTS, POINTS[:, :2], 1), "existing"),
        (([1.0], None, 1), "points"),
    ):
        with pytest.raises(ValueError, match=name):
            k_center(*bad)
    with pytest.raises(ValueError, match="finite"):
        k_center([[np.nan, 0.0]], None, 1)
    with pytest.raises(ValueError, match="labels"):
        average_covering_radius(POINTS, [0, 1])
    with pytest.raises(ValueError, match="empty"):
        covering_radius(POINTS, POINTS[:0])
