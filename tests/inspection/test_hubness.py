"""Hubs compared with plain counting."""

import numpy as np
import pytest
from scipy.stats import skew

from dmlcore.inspection.hubness import found_by, hubness
from dmlcore.metrics import nearest


@pytest.mark.parametrize("split", [False, True])
def test_occurrences_are_counted_over_the_queries(split):
    random = np.random.default_rng(1)
    labels = random.integers(3, size=50)
    searched = np.arange(50) % 2 == 0 if split else np.zeros(50, bool)
    pool = np.flatnonzero(searched) if split else np.arange(50)
    x = random.normal(size=(50, 12))
    rows = np.zeros((50, 6), np.int64)
    if split:
        rows[~searched] = pool[nearest(x[~searched], x[searched], 6)[1]]
    else:
        rows = nearest(x, k=6)[1]
    found = hubness(labels, rows, searched, 5)
    for place, row in enumerate(found.rows):
        asked = [q for q in np.flatnonzero(~searched) if row in rows[q, :5]]
        assert found.occurrences[place] == len(asked)
        assert found.bad[place] == sum(labels[q] != labels[row] for q in asked)
        assert sorted(found_by(rows, searched, row, 5)) == asked
    assert found.mean == pytest.approx(5 * (~searched).sum() / len(pool))
    assert found.skewness == pytest.approx(skew(found.occurrences))
    precision = (labels[rows[~searched, :5]] == labels[~searched, None]).mean()
    assert found.bad_share == pytest.approx(1 - precision)
    assert found.orphans.tolist() == [i for i, n in enumerate(found.occurrences) if n == 0]


def test_one_sample_that_all_find_is_the_hub():
    labels = np.array([0] + [1] * 9)
    rows = np.zeros((10, 1), np.int64)
    rows[0] = 1
    found = hubness(labels, rows, np.zeros(10, bool), 1)
    assert found.rows[found.hubs].tolist() == [0]
    assert found.rows[found.bad_hubs].tolist() == [0]
    assert found.bad_by_hubs == pytest.approx(0.9)
    assert len(found.orphans) == 8
    assert found.robin_hood == pytest.approx(0.8)  # 8 of 10 occurrences would have to move
    assert found_by(rows, np.zeros(10, bool), 0, 1).tolist() == list(range(1, 10))


def test_all_alike_has_no_skewness_and_no_hub():
    found = hubness([0, 0, 1, 1], [[1], [2], [3], [0]], np.zeros(4, bool), 1)
    assert found.skewness is None
    assert found.robin_hood == 0
    assert len(found.hubs) == len(found.orphans) == 0
    with pytest.raises(ValueError, match=r"k must be in 1\.\.1"):
        hubness([0, 0], [[1], [0]], np.zeros(2, bool), 2)
