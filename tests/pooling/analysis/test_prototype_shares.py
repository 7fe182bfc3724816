"""Local features described by prototypes, against one image at a time, and the bound on every image."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dmlcore.geometry import k_center
from dmlcore.pooling.analysis.prototype_shares import read


def maps(seed: int, images: int = 5, count: int = 9, dim: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(images, count, dim)) * 3


def test_each_image_is_a_combination_of_its_nearest_prototypes():
    features = maps(0)
    found = read(features, 6)
    assert np.linalg.norm(found.features, axis=-1).max() == pytest.approx(1.0)
    np.testing.assert_allclose(found.features * found.scale, features)
    flat = found.features.reshape(-1, 2)
    np.testing.assert_array_equal(found.prototypes, flat[k_center(flat, None, 6)])
    for i, image in enumerate(found.features):
        distances = np.linalg.norm(image[:, None] - found.prototypes, axis=-1)
        histogram = np.bincount(distances.argmin(1), minlength=6) / len(image)
        combination, nearest = histogram @ found.prototypes, distances.min(1)
        assert found.assignment[i].tolist() == distances.argmin(1).tolist()
        np.testing.assert_allclose(found.histograms[i], histogram)
        np.testing.assert_allclose(found.combination[i], combination)
        np.testing.assert_allclose(found.pooled[i], image.mean(0))
        measured = [found.error[i], found.mean_distance[i], found.radius[i]]
        np.testing.assert_allclose(
            measured, [np.linalg.norm(combination - image.mean(0)), nearest.mean(), nearest.max()]
        )


def test_the_patch_of_a_chosen_prototype_is_the_feature_it_was_made_of():
    found = read(maps(1), 8)
    for prototype, (image, position) in zip(found.prototypes, found.patches, strict=True):
        np.testing.assert_array_equal(found.features[image, position], prototype)


@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 4), st.booleans())
@settings(max_examples=60)
def test_the_bound_holds_for_any_weights(seed, count, dim, given_prototypes):
    random = np.random.default_rng(seed)
    weights = random.dirichlet(np.full(9, 0.3), 5) * random.uniform(0.1, 9)
    prototypes = random.normal(size=(count, dim)) * 5 if given_prototypes else count
    found = read(maps(seed, dim=dim), prototypes, weights)
    assert found.holds.all()
    np.testing.assert_allclose(found.histograms.sum(1), 1)
    np.testing.assert_allclose(found.weights.sum(1), 1)
    np.testing.assert_allclose(found.pooled, np.einsum("ij,ijd->id", found.weights, found.features))


def test_a_broken_bound_would_be_seen():
    found = read(maps(2), 4)
    object.__setattr__(found, "error", found.error + 10)
    assert not found.holds.any()


def test_features_that_weigh_nothing_do_not_count():
    features = np.array([[[1.0, 0.0], [0.9, 0.0], [-1.0, 0.0]]])
    found = read(features, [[1.0, 0.0]], [[1.0, 1.0, 0.0]])
    assert found.radius == pytest.approx(0.1)
    assert found.pooled[0].tolist() == pytest.approx([0.95, 0.0])


def test_blocks_change_nothing():
    features = np.random.default_rng(3).normal(size=(400, 40, 2))
    prototypes = np.random.default_rng(4).normal(size=(300, 2))  # 16,000 points in two blocks
    found = read(features, prototypes)
    flat = found.features.reshape(-1, 2)
    table = ((flat[:, None] - found.prototypes[None]) ** 2).sum(-1)
    np.testing.assert_array_equal(found.assignment.ravel(), table.argmin(1))
    np.testing.assert_array_equal(found.patches @ [40, 1], table.argmin(0))


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="features must be finite"):
        read(np.zeros((0, 3, 2)), 1)
    with pytest.raises(ValueError, match="weights must be at least 0"):
        read(maps(0), 2, np.full((5, 9), -1.0))
    with pytest.raises(ValueError, match="prototypes must be finite"):
        read(maps(0), np.zeros((2, 3)))
    with pytest.raises(ValueError, match="k must be in 0"):
        read(maps(0), 46)
