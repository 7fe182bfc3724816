"""Whitening compared with its definition."""

from __future__ import annotations

import numpy as np
import pytest

from dmlcore.models import whitening

random = np.random.default_rng(0)
LABELS = np.repeat(np.arange(12), 5)
FEATURES = (random.normal(size=(12, 8))[LABELS] + random.normal(size=(60, 8)) * np.arange(1, 9)).astype(np.float32)


def covariance(points, labels):
    centred = np.concatenate([points[labels == label] - points[labels == label].mean(0) for label in np.unique(labels)])
    return centred.T @ centred / len(points)


@pytest.mark.parametrize("labels", [None, LABELS])
def test_covariance_is_the_identity_without_shrinkage(labels):
    fitted = whitening.fit(FEATURES, labels, shrinkage=0)
    points = (whitening.normalise(FEATURES) - fitted.mean) @ fitted.weight
    of = covariance(points, np.zeros(60, int) if labels is None else labels)
    np.testing.assert_allclose(of, np.eye(8), atol=1e-4)


def test_shrinkage_bounds_the_amplification_with_fewer_samples_than_features():
    few = whitening.fit(FEATURES[:5], shrinkage=1.0)
    variances = np.linalg.eigvalsh(covariance(whitening.normalise(FEATURES[:5]), np.zeros(5, int))).clip(0)
    largest = np.linalg.svd(few.weight, compute_uv=False)[0]
    assert largest == pytest.approx(1 / np.sqrt(variances.min() + variances.mean()), rel=1e-5)


def test_order_and_scale_of_the_samples_do_not_matter():
    order, scale = random.permutation(60), random.uniform(0.5, 2, (60, 1)).astype(np.float32)
    one = whitening.fit(FEATURES, LABELS)
    other = whitening.fit((FEATURES * scale)[order], LABELS[order])
    cosines = [fitted(FEATURES) @ fitted(FEATURES).T for fitted in (one, other)]
    np.testing.assert_allclose(*cosines, atol=1e-4)


def test_features_that_do_not_vary_are_refused():
    with pytest.raises(ValueError, match="features that vary"):
        whitening.fit(np.ones((4, 3), np.float32))
    with pytest.raises(ValueError, match="two different samples"):
        whitening.fit(FEATURES[::5], LABELS[::5])
    assert np.isfinite(whitening.fit(FEATURES)(np.zeros((1, 8), np.float32))).all()
