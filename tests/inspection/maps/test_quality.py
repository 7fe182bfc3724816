"""Quality of a map compared with scikit-learn and a plain loop; its cost is bounded, and it tolerates duplicates."""

import numpy as np
import pytest
from sklearn.manifold import trustworthiness

from dmlcore.inspection.maps.quality import quality
from tests.members import in_one_case

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(120, 8))
PLANE = POINTS[:, :2] + RNG.normal(size=(120, 2)) * 0.3


def kept_by_a_loop(k):
    shares = []
    for i in range(len(POINTS)):
        near = [np.argsort(np.linalg.norm(x - x[i], axis=1)) for x in (POINTS, PLANE)]
        first, second = ({j for j in order if j != i} and set([j for j in order if j != i][:k]) for order in near)
        shares.append(len(first & second) / k)
    return float(np.mean(shares))


@in_one_case(k=[1, 5, 15, 59])
def test_it_is_what_scikit_learn_and_a_loop_say(k):
    found = quality(POINTS * 1e4 + 7, PLANE, k=k)
    assert found.trustworthiness == pytest.approx(trustworthiness(POINTS, PLANE, n_neighbors=k), abs=1e-12)
    assert found.kept_neighbours == pytest.approx(kept_by_a_loop(k), abs=1e-12)
    assert (found.k, found.sampled, found.points) == (k, 120, 120)


def test_a_sample_is_said_and_near_the_whole():
    whole, part = quality(POINTS, PLANE), quality(POINTS, PLANE, most_pairs=60 * 120)
    assert (part.sampled, part.points) == (60, 120)
    assert part.trustworthiness == pytest.approx(whole.trustworthiness, abs=0.03)
    assert part.kept_neighbours == pytest.approx(whole.kept_neighbours, abs=0.06)
    assert "measured on 60 of 120 points" in part.words
    assert "measured on" not in whole.words


def test_the_best_and_the_worst_map():
    same = quality(PLANE, PLANE * 3 + 1)
    assert (same.trustworthiness, same.kept_neighbours) == (1, 1)
    line = np.arange(100.0)[:, None]
    torn = quality(line, np.stack([(line[:, 0] * 37) % 100, line[:, 0] * 0], axis=1), k=2)
    assert torn.kept_neighbours < 0.05
    assert torn.trustworthiness < 0.6


def test_points_strewn_at_random_are_told_from_a_map():
    strewn = quality(POINTS, RNG.normal(size=(120, 2)))
    assert strewn.trustworthiness == pytest.approx(0.5, abs=0.06)
    assert strewn.doubt in strewn.words
    assert "meaningless" in strewn.doubt
    assert not quality(POINTS, PLANE).doubt


def test_copies_cost_nothing():
    copies = np.repeat(POINTS[:6], 20, axis=0)
    found = quality(copies, RNG.normal(size=(6, 2))[np.repeat(np.arange(6), 20)] * 50 + RNG.normal(size=(120, 2)) * 0.1)
    assert (found.trustworthiness, found.kept_neighbours) == (1, 1)


def test_few_points_have_fewer_neighbours_or_no_quality():
    assert quality(POINTS[:9], PLANE[:9]).k == 4
    assert quality(POINTS[:2], PLANE[:2]) is None
    with pytest.raises(ValueError, match="one row per embedding"):
        quality(POINTS[:9], PLANE[:8])
