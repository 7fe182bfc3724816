"""Orders and filters of queries, with ties, samples alone in their class, and galleries."""

import numpy as np
import pytest

from dmlcore.inspection import neighbours, queries
from tests.inspection.test_neighbours import write_embeddings


@pytest.fixture(params=[False, True], ids=["alone", "gallery"])
def found(tmp_path, request):
    return neighbours.read(write_embeddings(tmp_path / "a.npz", classes=12, n=150, gallery=request.param))


KEYS = {
    "worst first": lambda f: f.average_precision,
    "best first": lambda f: -f.average_precision,
    "late matches first": lambda f: -f.positives.rank.astype(float),
    "far matches first": lambda f: -f.positives.nearest_distance,
    "far positives first": lambda f: -f.positives.farthest_distance,
    "by index": lambda f: f.indices,
}


@pytest.mark.parametrize("order", KEYS)
def test_an_order_is_that_of_its_key(found, order):
    rows = queries.select(found, order)
    assert sorted(rows) == np.flatnonzero(~found.is_gallery).tolist()
    scored = rows[~np.isnan(found.average_precision[rows])]
    assert (np.diff(KEYS[order](found)[scored]) >= 0).all()
    if order != "by index":
        assert np.isnan(found.average_precision[rows[len(scored) :]]).all(), "queries without a match come last"


def test_failures_first_are_the_failures_the_surest_of_them_ahead(found):
    rows = queries.select(found, "failures first")
    count = int(found.failures.sum())
    assert 5 < count < len(rows)
    assert found.failures[rows[:count]].all()
    share = found.distances[rows[:count], 0] / found.positives.nearest_distance[rows[:count]]
    assert (np.diff(share) >= 0).all()
    assert share[-1] <= 1
    assert np.array_equal(np.sort(rows[:count]), np.sort(queries.select(found, "worst first", failures=True)))


def test_filters_hold_together(found):
    some = found.indices[::2]
    rows = queries.select(found, "by index", label=3, indices=some)
    assert len(rows)
    assert (found.labels[rows] == 3).all()
    assert np.isin(found.indices[rows], some).all()
    assert not found.is_gallery[rows].any()
    assert len(rows) == ((found.labels == 3) & np.isin(found.indices, some) & ~found.is_gallery).sum()


def test_an_unknown_order_is_named(found):
    with pytest.raises(ValueError, match="worst first"):
        queries.select(found, "nicest first")
