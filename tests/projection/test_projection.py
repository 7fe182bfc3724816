"""Maps: deterministic, invariant, faithful to neighbours, with clear messages for invalid input."""

import numpy as np
import pytest
import torch

from dmlcore import projection
from dmlcore.metrics import retrieval
from dmlcore.projection import pca, place_pca, place_tsne, place_umap, tsne, umap
from tests.members import in_one_case

RNG = np.random.default_rng(0)
LABELS = np.repeat(np.arange(4), 20)
BLOBS = RNG.normal(size=(80, 10)) * 0.1 + np.eye(10)[LABELS]


def purity(plane):
    return retrieval(plane, LABELS).recall_at[1]


def test_tsne_keeps_classes_together_and_is_a_function_of_its_arguments():
    done: list[float] = []
    plane = tsne(BLOBS, iterations=200, progress=done.append)
    assert plane.shape == (80, 2)
    assert plane.dtype == np.float32
    assert purity(plane) > 0.95
    np.testing.assert_array_equal(plane, tsne(torch.from_numpy(BLOBS), iterations=200))
    assert done == sorted(done)
    assert 0 < done[0] < 0.3
    assert done[-1] == 1


def test_a_tsne_does_not_depend_on_the_number_of_threads(monkeypatch):
    planes = []
    for threads in ("1", "2"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        planes.append(tsne(BLOBS, iterations=100))
    np.testing.assert_array_equal(*planes)


def test_many_points_are_mapped_on_a_grid(monkeypatch):
    by_tree = tsne(BLOBS, iterations=100)
    monkeypatch.setattr(projection.stochastic, "TREE", 50)
    on_grid = tsne(BLOBS, iterations=100)
    assert purity(on_grid) > 0.95
    assert not np.array_equal(on_grid, by_tree)


@pytest.mark.parametrize(("scale", "offset"), [(2.0**-40, 0.0), (1e30, 0.0), (1.0, 1e6)])
def test_scale_and_offset_do_not_matter(scale, offset):
    plane = tsne(BLOBS * scale + offset, iterations=200)
    assert np.isfinite(plane).all()
    assert purity(plane) > 0.95


@in_one_case(shape=[(5, 3), (6, 1), (20, 1), (7, 40)])
def test_few_points_and_few_dimensions(shape):
    points = RNG.normal(size=shape)
    plane = tsne(points, perplexity=500, iterations=100)
    assert plane.shape == (shape[0], 2)
    assert np.isfinite(plane).all()
    assert np.isfinite(place_tsne(points, plane, points[:2])).all()


def test_two_distinct_points_among_copies_have_a_map():
    assert np.isfinite(tsne([[0.0, 0.0]] * 9 + [[1.0, 1.0]], iterations=100)).all()


def test_a_map_goes_on_from_a_start():
    before = tsne(BLOBS, iterations=200)
    after = tsne(BLOBS + RNG.normal(size=BLOBS.shape) * 1e-3, iterations=100, start=before)
    moved = np.linalg.norm(after - before, axis=1)
    assert np.median(moved) < 0.1 * np.ptp(before)


def test_new_points_come_to_their_neighbours_on_a_tsne():
    plane = tsne(BLOBS, iterations=200) + 100  # invariant to translation
    fresh = RNG.normal(size=(12, 10)) * 0.1 + np.eye(10)[LABELS[::7]]
    placed = place_tsne(BLOBS, plane, fresh)
    scores = retrieval(placed, LABELS[::7], gallery=plane, gallery_labels=LABELS, ks=(1,))
    assert scores.recall_at[1] == 1
    alone = place_tsne(BLOBS, plane, fresh[3:4])
    np.testing.assert_allclose(alone[0], placed[3], atol=1e-3)  # new points do not affect each other


def test_umap_keeps_classes_together_and_is_a_function_of_its_arguments():
    """All of UMAP in one test, because loading its functions takes 1 s per process and compiling many takes long."""
    done: list[float] = []
    plane = umap(BLOBS, iterations=100, progress=done.append)
    assert plane.shape == (80, 2)
    assert plane.dtype == np.float32
    assert purity(plane) > 0.95
    np.testing.assert_array_equal(plane, umap(torch.from_numpy(BLOBS) * 8 + 3, iterations=100))
    assert done[-1] == 1
    assert len(done) > 50
    assert np.isfinite(umap(BLOBS[:5], iterations=100)).all()
    later = umap(BLOBS, iterations=1, start=plane)
    assert min(np.corrcoef(later[:, axis], plane[:, axis])[0, 1] for axis in (0, 1)) > 0.95
    fresh = RNG.normal(size=(12, 10)) * 0.1 + np.eye(10)[LABELS[::7]]
    placed = place_umap(BLOBS, plane, fresh)
    assert retrieval(placed, LABELS[::7], gallery=plane, gallery_labels=LABELS, ks=(1,)).recall_at[1] == 1
    np.testing.assert_allclose(place_umap(BLOBS, plane, BLOBS[:9]), plane[:9])


def test_the_weights_of_a_new_point_on_a_umap_are_those_of_umap():
    """smooth_knn_dist: the strengths sum to log2(k), and that of the nearest neighbour is 1."""
    distances = np.sort(RNG.uniform(0.1, 2, size=(30, 15)), axis=1)
    strengths = projection.uniform._strengths(distances)
    np.testing.assert_allclose(strengths[:, 0], 1)
    np.testing.assert_allclose(strengths.sum(axis=1), np.log2(15))


def test_without_umap_learn_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "umap", None)
    with pytest.raises(projection.Missing, match=r"pip install .dml-lab\[cluster\]"):
        umap(BLOBS)


def test_pca_finds_the_widest_plane():
    rotation = np.linalg.qr(RNG.normal(size=(6, 6)))[0]
    flat = RNG.normal(size=(50, 2)) * [3.0, 1.0]
    plane = pca(np.pad(flat, ((0, 0), (0, 4))) @ rotation + 7)
    distances = np.linalg.norm(plane[:, None] - plane, axis=-1)
    expected = np.linalg.norm(flat[:, None] - flat, axis=-1)
    np.testing.assert_allclose(distances, expected, atol=1e-5)
    assert plane[:, 0].std() > plane[:, 1].std()


def test_pca_of_a_line_and_of_one_place():
    line = pca([[0.0], [1.0], [3.0]])
    assert not line[:, 1].any()
    assert len(set(line[:, 0].tolist())) == 3
    assert not pca(np.full((4, 3), 0.1)).any()
    assert not pca([[1.0, 2.0]]).any()


@in_one_case(points=[BLOBS, BLOBS * 1e3 + 1e5, BLOBS[:, :1], np.full((4, 3), 0.1)])
def test_a_new_point_lies_where_pca_puts_it(points):
    plane = pca(points)
    np.testing.assert_allclose(place_pca(points, points), plane, atol=1e-6 * max(1, np.abs(plane).max()))
    middle = place_pca(points, points.mean(axis=0, keepdims=True))
    np.testing.assert_allclose(middle, 0, atol=1e-6 * max(1, np.abs(plane).max()))


@pytest.mark.parametrize("method", [tsne, umap])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"embeddings": np.eye(4)}, "embeddings must hold at least 5 points"),
        ({"embeddings": np.full((30, 7), 0.1)}, "embeddings are all equal"),
        ({"embeddings": np.zeros((30, 2))}, "embeddings are all equal"),
        ({"embeddings": np.zeros(5)}, "embeddings must be real numbers of shape"),
        ({"embeddings": [["a"]] * 5}, "embeddings must be real numbers of shape"),
        ({"embeddings": [[np.nan]] * 5}, "embeddings must be finite"),
        ({"embeddings": BLOBS, "start": np.zeros((79, 2))}, "the map must be 80 finite points"),
    ],
)
def test_bad_input_is_named(method, arguments, message):
    with pytest.raises(ValueError, match=message):
        method(**arguments)


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        (tsne, {"perplexity": 1}, "perplexity must be"),
        (tsne, {"perplexity": np.nan}, "perplexity must be"),
        (tsne, {"iterations": 10}, "iterations must be at least 100"),
        (tsne, {"seed": -1}, "seed must be"),
        (umap, {"neighbours": 1}, "neighbours must be at least 2"),
        (umap, {"min_dist": 1.5}, "min_dist must be 0 to 1"),
    ],
)
def test_bad_settings_are_named(method, arguments, message):
    with pytest.raises(ValueError, match=message):
        method(BLOBS, **arguments)


def test_new_points_of_another_dimension_are_refused():
    plane = np.zeros((80, 2))
    for place in (lambda new: place_pca(BLOBS, new), lambda new: place_tsne(BLOBS, plane, new)):
        with pytest.raises(ValueError, match="new must have the 10 dimensions"):
            place(np.zeros((1, 9)))
