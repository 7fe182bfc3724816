"""Maps: deterministic, invariant, faithful to neighbours, and clear about what they refuse."""

import numpy as np
import pytest
import torch

from dmlcore.metrics import retrieval
from dmlcore.projection import pca, tsne

RNG = np.random.default_rng(0)
LABELS = np.repeat(np.arange(4), 20)
BLOBS = RNG.normal(size=(80, 10)) * 0.1 + np.eye(10)[LABELS]


def test_tsne_keeps_classes_together_and_is_a_function_of_its_arguments():
    plane = tsne(BLOBS, iterations=300)
    assert plane.shape == (80, 2)
    assert plane.dtype == np.float32
    assert retrieval(plane, LABELS).recall_at[1] > 0.95
    np.testing.assert_array_equal(plane, tsne(torch.from_numpy(BLOBS), iterations=300))


@pytest.mark.parametrize(("scale", "offset"), [(2.0**-40, 0.0), (1e30, 0.0), (1.0, 1e6)])
def test_scale_and_offset_do_not_matter(scale, offset):
    plane = tsne(BLOBS * scale + offset, iterations=300)
    assert np.isfinite(plane).all()
    assert retrieval(plane, LABELS).recall_at[1] > 0.95


@pytest.mark.parametrize("shape", [(5, 3), (6, 1), (20, 1), (7, 40)])
def test_few_points_and_few_dimensions(shape):
    plane = tsne(RNG.normal(size=shape), perplexity=500, iterations=250)
    assert plane.shape == (shape[0], 2)
    assert np.isfinite(plane).all()


def test_two_distinct_points_among_copies_have_a_map():
    assert np.isfinite(tsne([[0.0, 0.0]] * 9 + [[1.0, 1.0]], iterations=250)).all()


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"embeddings": np.eye(4)}, "embeddings must hold at least 5 points"),
        ({"embeddings": np.full((30, 7), 0.1)}, "embeddings are all equal"),
        ({"embeddings": np.zeros((30, 2))}, "embeddings are all equal"),
        ({"embeddings": np.zeros(5)}, "embeddings must be real numbers of shape"),
        ({"embeddings": [["a"]] * 5}, "embeddings must be real numbers of shape"),
        ({"embeddings": [[np.nan]] * 5}, "embeddings must be finite"),
        ({"embeddings": BLOBS, "perplexity": 1}, "perplexity must be"),
        ({"embeddings": BLOBS, "perplexity": np.nan}, "perplexity must be"),
        ({"embeddings": BLOBS, "iterations": 10}, "iterations must be at least 100"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        tsne(**arguments)
