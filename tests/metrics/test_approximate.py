import faiss
import numpy as np
import pytest

from dmlcore.metrics import nearest
from dmlcore.metrics.approximate import TITLES, ApproximateSearch, estimate_costs, index_bytes, recall

NEARLY = [kind for kind in TITLES if kind != "exact"]


@pytest.fixture(scope="module")
def points():
    """Return classes of twenty points that resemble embeddings."""
    generator = np.random.default_rng(0)
    centres = generator.standard_normal((200, 16))
    return (np.repeat(centres, 20, axis=0) + 0.3 * generator.standard_normal((4000, 16))).astype(np.float32)


@pytest.fixture(scope="module")
def indices(points):
    """Return one index of each kind, built once; each test sets its breadth."""
    return {kind: ApproximateSearch(points, kind) for kind in TITLES}


@pytest.mark.parametrize("kind", TITLES)
def test_recall_is_the_share_of_the_exact_neighbours_found(points, indices, kind):
    """Against the exact search of the library, query by query, by another way than `recall` takes."""
    search = indices[kind]
    search.breadth = 2
    rows = np.arange(0, 4000, 40)
    distances, others = search.others(points, rows, 5)
    exact_distances, exact = nearest(points[rows], points, 6)
    exact, exact_distances = exact[:, 1:], exact_distances[:, 1:]  # the first is the query itself
    hits = np.array([[other in row for other in near] for near, row in zip(others, exact, strict=True)])
    measured = recall(search, points, 5, queries=1000)
    assert measured.queries == 1000
    assert measured.share == pytest.approx(hits.mean(), abs=0.06)  # of 100 queries and of 1000
    assert measured.least_whole < measured.whole <= measured.share <= 1
    if kind == "exact":
        assert measured.share == measured.whole == 1
        np.testing.assert_array_equal(others, exact)
        np.testing.assert_allclose(distances, exact_distances, rtol=1e-4)
    else:
        assert measured.share > 0.3


@pytest.mark.parametrize("kind", NEARLY)
def test_more_breadth_finds_more(points, indices, kind):
    search = indices[kind]
    search.breadth = 1
    narrow = recall(search, points, 10, queries=300)
    search.breadth = 60
    wide = recall(search, points, 10, queries=300)
    assert wide.share > narrow.share
    assert wide.off < 1
    if kind != "ivf_pq":  # which sees rounded points only
        assert wide.share > 0.99


@pytest.mark.parametrize("kind", TITLES)
def test_a_score_is_off_by_no_more_than_is_said(points, indices, kind):
    """Compare the share of queries whose nearest neighbour has their class, exact and approximate."""
    labels = np.repeat(np.arange(200), 20)
    search = indices[kind]
    search.breadth = 1
    _, near = search.others(points, np.arange(4000), 1)
    _, exact = nearest(points, k=1)
    difference = abs((labels[near[:, 0]] == labels).mean() - (labels[exact[:, 0]] == labels).mean())
    assert difference <= recall(search, points, 1, queries=500).off


@pytest.mark.parametrize("kind", TITLES)
def test_bytes_are_those_of_the_index(points, indices, kind):
    stored = len(faiss.serialize_index(indices[kind].index))
    assert index_bytes(kind, *points.shape) == pytest.approx(stored, rel=0.05)


def test_points_on_disk_give_the_same_index(points, indices, tmp_path):
    np.save(tmp_path / "points.npy", points)
    mapped = np.load(tmp_path / "points.npy", mmap_mode="r")
    for kind in ("exact", "ivf", "ivf_pq"):
        there, here = ApproximateSearch(mapped, kind), indices[kind]
        here.breadth = there.breadth
        np.testing.assert_array_equal(there.nearest(points[:50], 5)[1], here.nearest(points[:50], 5)[1])


def test_costs_grow_with_the_points():
    small, large = estimate_costs(1_000, 16), estimate_costs(1_000_000, 16)
    assert [cost.kind for cost in small] == list(TITLES)
    for less, more in zip(small, large, strict=True):
        assert more.bytes > 500 * less.bytes or less.kind == "ivf_pq"
        assert more.build > less.build or less.kind == "exact"  # an exact index is only a copy
        # of two attempts, as times on a busy machine vary more
        assert more.thousand > less.thousand or less.kind == "hnsw"
    by_kind = {cost.kind: cost for cost in large}
    assert by_kind["ivf_pq"].bytes < by_kind["exact"].bytes / 2
    assert by_kind["hnsw"].thousand < by_kind["exact"].thousand


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: ApproximateSearch(p, "lsh"), "kind must be one of exact, ivf"),
        (lambda p: ApproximateSearch(p[0], "ivf"), "points must have shape"),
        (lambda p: ApproximateSearch(p, "ivf", breadth=0), "breadth must be a whole number"),
        (lambda p: ApproximateSearch(p, "exact").nearest(p[:1], 4001), "k must be in 1..4000"),
        (lambda p: ApproximateSearch(p, "exact").nearest(p[:1] * np.nan, 1), "queries must be finite"),
    ],
)
def test_bad_input_is_named(points, call, message):
    with pytest.raises(ValueError, match=message):
        call(points)
