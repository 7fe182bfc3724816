"""Exact neighbours against the definition, a stable sort of all float64 distances."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dmlcore.metrics import nearest, nearest_neighbours
from dmlcore.metrics.nearest_neighbours import NeighbourSearch
from tests.members import in_one_case


def oracle(queries, gallery, k, exclude_self):
    difference = np.asarray(queries, np.float64)[:, None] - np.asarray(gallery, np.float64)[None]
    distances = np.sqrt((difference**2).sum(axis=-1))
    if exclude_self:
        np.fill_diagonal(distances, np.inf)
    indices = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(distances, indices, axis=1), indices


def agree(queries, gallery, k):
    expected, order = oracle(queries, queries if gallery is None else gallery, k, exclude_self=gallery is None)
    distances, indices = nearest(queries, gallery, k)
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_allclose(distances, expected, rtol=1e-13)


@st.composite
def lattices(draw):
    """Draw small integers times a power of two, some with an offset: many exact ties, exact in every formula."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = draw(st.integers(2, 60)), draw(st.integers(1, 12))
    points = rng.integers(0, draw(st.integers(1, 5)), shape).astype(np.float64)
    return (points + draw(st.sampled_from([0, -7, 1000, 2**20]))) * 2.0 ** draw(st.sampled_from([0, -3, 40, -80, 300]))


@settings(max_examples=150)
@given(lattices(), st.data())
def test_ties_and_copies_are_ranked_by_index(points, data):
    agree(points, None, data.draw(st.integers(1, len(points) - 1)))


@settings(max_examples=80)
@given(lattices(), st.data())
def test_a_separate_gallery_leaves_nothing_out(points, data):
    cut = data.draw(st.integers(1, len(points) - 1))
    agree(points[:cut], points[cut:], data.draw(st.integers(1, len(points) - cut)))


@settings(max_examples=60)
@given(
    st.integers(0, 2**32),
    st.integers(2, 300),
    st.integers(1, 70),
    st.sampled_from([0.0, 1.0, 1e3, 1e6]),
    st.sampled_from([np.float32, np.float64]),
    st.data(),
)
def test_random_points_near_and_far(seed, items, dimensions, offset, dtype, data):
    points = (np.random.default_rng(seed).normal(size=(items, dimensions)) + offset).astype(dtype)
    agree(points, None, data.draw(st.integers(1, min(items - 1, 20))))


def refuse(*_):
    raise AssertionError("compared with the whole gallery")


def test_two_far_off_clusters_keep_their_inner_order(monkeypatch):
    """The expanded form in float32 cannot see these distances at all (reliability.md, row 42); in float64 it can."""
    monkeypatch.setattr(NeighbourSearch, "_ranked_directly", refuse)
    rng = np.random.default_rng(0)
    points = rng.normal(size=(400, 16)) * 1e-3
    points[::2] += 1000
    agree(points, None, 10)


def test_a_query_need_not_be_listed_among_its_own_copies():
    points = np.concatenate([np.zeros((300, 3)), np.ones((5, 3))])
    distances, indices = nearest(points, k=4)
    assert indices[299].tolist() == [0, 1, 2, 3]
    assert indices[1].tolist() == [0, 2, 3, 4]
    assert indices[304].tolist() == [300, 301, 302, 303]
    assert not distances.any()


def test_ties_at_the_last_place_beyond_all_spare_candidates():
    rng = np.random.default_rng(1)
    ring = np.eye(200)[rng.permutation(200)]
    _, indices = nearest(np.zeros((1, 200)), ring, 7)
    assert indices[0].tolist() == list(range(7))


@in_one_case(k=range(1, 30, 4))
def test_more_ties_at_the_last_place_than_candidates(k):
    """Nine places hold 200 points: a wide gap before the k-th neighbour proves nothing about the k-th."""
    agree(np.random.default_rng(2).integers(0, 3, (200, 2)), None, k)


def test_a_common_offset_costs_no_direct_comparison(monkeypatch):
    monkeypatch.setattr(NeighbourSearch, "_ranked_in_double", refuse)
    agree(np.random.default_rng(4).normal(size=(300, 16)) + 1e5, None, 10)


def test_candidates_prove_the_neighbours_although_no_single_gap_exceeds_the_bound(monkeypatch):
    """Like the neighbours of rank 1,000 among 60,000 points: their distances are close, but the last is far enough."""
    monkeypatch.setattr(NeighbourSearch, "_ranked_in_double", refuse)
    points = np.sqrt(1 + 1e-5 * np.arange(1000))[:, None] * np.eye(1, 300)
    order = np.random.default_rng(5).permutation(1000)
    query = np.zeros((1, 300))
    search = NeighbourSearch(query, points[order], exclude_self=False)
    gaps = np.diff(search._candidates(np.arange(1), 500)[0])
    assert gaps.max() < 2 * nearest_neighbours.error_bound(search._norms, gaps[:, -1] * 0 + 1, search._longest, 300)[0]
    agree(query, points[order], 900)


def test_all_equal_points_rank_by_index():
    _, indices = nearest(np.full((50, 4), 0.1), k=3)
    assert indices[0].tolist() == [1, 2, 3]
    assert (indices[3:] == [0, 1, 2]).all()


@in_one_case(size=[1e300, 1e30, 1e-30, 1e-300])
def test_neither_overflow_nor_underflow(size):
    points = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 4.0], [0.0, 8.0]]) * size
    distances, indices = nearest(points, k=1)
    assert indices[:, 0].tolist() == [1, 0, 1, 2]
    np.testing.assert_allclose(distances[:, 0] / size, [1, 1, 2, 4], rtol=1e-12)


def test_the_answer_does_not_depend_on_chunks(monkeypatch):
    points = np.random.default_rng(2).integers(0, 3, (90, 4))
    whole = nearest(points, k=5)
    monkeypatch.setattr(nearest_neighbours, "CHUNK", 64)
    for one, other in zip(whole, nearest(points, k=5), strict=True):
        np.testing.assert_array_equal(one, other)


@in_one_case(
    dimensions=[1, 2, 16, 128, 1000],
    case=[(0, 1), (1, 1e-3), (1000, 1), (0, 1e12), (0, 1e-12)],
)
def test_the_error_bound_holds_and_is_not_idle(case, dimensions):
    offset, scale = case
    rng = np.random.default_rng(dimensions)
    points = (rng.normal(size=(120, dimensions)) + offset * rng.choice([-1, 1], (120, 1))) * scale
    search = NeighbourSearch(points, exclude_self=False)
    rows = np.arange(120)
    squares, indices = search._candidates(rows, 120)
    bound = nearest_neighbours.error_bound(search._norms, squares[:, -1], search._longest, dimensions)
    error = np.abs(squares - search.distances(rows, indices) ** 2 * 4.0**search._shrink)
    assert (error <= bound[:, None]).all()
    assert bound.max() < 1e-3 * squares.max()


@in_one_case(dtype=[torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int64])
def test_torch_tensors_of_every_kind(dtype):
    points = torch.tensor([[0, 0], [3, 4], [0, 1]], dtype=dtype)
    distances, indices = nearest(points, k=1)
    assert indices[:, 0].tolist() == [2, 2, 0]
    assert distances[0, 0] == 1.0
    assert nearest(points.double().requires_grad_(), k=1)[0].dtype == np.float64


def test_self_may_be_left_out_of_an_equal_gallery_too():
    points = np.random.default_rng(3).normal(size=(20, 3))
    np.testing.assert_array_equal(nearest(points, points, 4, exclude_self=True)[1], nearest(points, k=4)[1])
    assert (nearest(points, k=20, exclude_self=False)[1][:, 0] == np.arange(20)).all()


GOOD = np.zeros((3, 2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"queries": [[0.0, np.nan]], "gallery": GOOD, "k": 1}, "queries must be finite, but row 0"),
        ({"queries": GOOD, "gallery": [[0.0, 0.0], [np.inf, 0.0]], "k": 1}, "gallery must be finite, but row 1"),
        ({"queries": np.zeros(3)}, "queries must have shape"),
        ({"queries": np.zeros((0, 2))}, "queries must have shape"),
        ({"queries": GOOD, "gallery": np.zeros((0, 2)), "k": 1}, "gallery must have shape"),
        ({"queries": GOOD, "gallery": np.zeros((3, 5)), "k": 1}, "gallery must have the 2 dimensions"),
        ({"queries": GOOD, "k": 3}, "k must be an integer in 1..2"),
        ({"queries": GOOD, "k": 0}, "k must be an integer in 1..2"),
        ({"queries": GOOD, "k": 1.5}, "k must be an integer"),
        ({"queries": GOOD, "gallery": np.zeros((2, 2)), "k": 1, "exclude_self": True}, "exclude_self needs"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        nearest(**arguments)


@pytest.mark.parametrize("queries", [[["a", "b"]], np.zeros((2, 2), complex), np.zeros((2, 2), object)])
def test_what_is_not_a_real_number_is_refused(queries):
    with pytest.raises(TypeError, match="queries must hold real numbers"):
        nearest(queries, k=1)


@in_one_case(k=[30, 80, 250])
def test_long_lists_with_ties_and_faiss_as_it_was(k):
    settings = nearest_neighbours.faiss.cvar
    before = settings.distance_compute_min_k_reservoir, settings.distance_compute_blas_query_bs
    points = np.random.default_rng(k).integers(0, 3, (300, 6)).astype(np.float32)
    agree(points, None, k)
    agree(points[:40] + np.float32(0.25), points, k)
    after = settings.distance_compute_min_k_reservoir, settings.distance_compute_blas_query_bs
    assert after == before


def test_points_are_scaled_as_by_ldexp():
    random = np.random.default_rng(0)
    points = np.ldexp(random.normal(size=2000), random.integers(-1074, 900, 2000))
    for exponent in (-1074, -1023, -1001, -1000, -140, -1, 0, 1, 20):
        np.testing.assert_array_equal(nearest_neighbours._scaled(points, exponent), np.ldexp(points, exponent))
    single = points[np.abs(points) < 1e38].astype(np.float32)
    np.testing.assert_array_equal(nearest_neighbours._scaled(single, -130), np.ldexp(single.astype(np.float64), -130))
