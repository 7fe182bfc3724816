"""Curves of pairs against scikit-learn, from all similarities and from histograms, and their intervals."""

import sys

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from dmlcore import metrics
from dmlcore.metrics import pair_counts
from dmlcore.typing import Bools, Floats, Ints

module = sys.modules["dmlcore.metrics.verification"]  # the package exports the function under the same name


def pairs(embeddings: Floats, labels: Ints) -> tuple[Floats, Bools]:
    """Return the similarity of each pair, rounded so that ties are equal, and whether its classes are equal."""
    unit = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    upper = np.triu_indices(len(labels), 1)
    return np.round((unit @ unit.T)[upper], 7), (labels[:, None] == labels)[upper]


def clusters(classes: int, each: int, noise: float = 1.0, seed: int = 0) -> tuple[Floats, Ints]:
    """Return Gaussian classes around random centres, and their labels."""
    draw = np.random.default_rng(seed)
    labels = np.repeat(np.arange(classes), each)
    return draw.normal(size=(classes, 16))[labels] + noise * draw.normal(size=(classes * each, 16)), labels


def test_curves_equal_those_of_scikit_learn_with_ties() -> None:
    draw = np.random.default_rng(0)
    for _ in range(100):
        count = int(draw.integers(4, 60))
        labels = np.concatenate([[0, 0, 1], draw.integers(0, max(2, count // 4), count)])
        embeddings = draw.integers(-2, 3, (len(labels), int(draw.integers(1, 5)))).astype(float)
        embeddings[(embeddings == 0).all(axis=1)] = 1
        similarities, same = pairs(embeddings, labels)
        found = metrics.verification(embeddings, labels)
        fmr, tpr, thresholds = roc_curve(same, similarities, drop_intermediate=False)
        np.testing.assert_allclose(found.fmr, fmr, atol=1e-12)
        np.testing.assert_allclose(found.tpr, tpr, atol=1e-12)
        np.testing.assert_allclose(found.thresholds, thresholds, atol=1e-6)
        assert found.auc == pytest.approx(roc_auc_score(same, similarities))
        assert found.average_precision == pytest.approx(average_precision_score(same, similarities))
        assert found.tpr_at(0.1) == tpr[fmr <= 0.1].max()


@pytest.mark.parametrize("classes", [30, 200])  # one group each, and groups of several classes
def test_histograms_count_the_samepairs(classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings, labels = clusters(classes, 6)
    exact = metrics.verification(embeddings, labels)
    monkeypatch.setattr(module, "EXACT", 0)
    monkeypatch.setattr(pair_counts, "ELEMENTS", 5000)  # several blocks
    binned = metrics.verification(embeddings, labels)
    assert (binned.same, binned.different) == (exact.same, exact.different)
    similarities, same = pairs(embeddings, labels)
    for threshold, *found in list(zip(binned.thresholds, binned.fmr, binned.tpr, strict=True))[::40]:
        apart = np.abs(similarities - threshold) > 1e-5  # float32 may put the others on either side
        accepted = similarities >= threshold
        for rate, kind in zip(found, (~same, same), strict=True):
            assert abs(rate * kind.sum() - accepted[kind].sum()) <= (kind & ~apart).sum() + 1e-6
    assert binned.eer == pytest.approx(exact.eer, abs=2e-3)
    assert exact.rates_at(exact.threshold_at(0.01))[0] <= 0.01
    assert binned.tpr_at(0.01) == pytest.approx(exact.tpr_at(0.01), abs=0.01)


def test_rates_at_a_threshold() -> None:
    found = metrics.verification([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]], [0, 0, 1])  # similarities 0.6 (same), 0.8, 0
    assert found.rates_at(0.9) == (0, 1)
    assert found.rates_at(0.7) == (0.5, 1)
    assert found.rates_at(0.5) == (0.5, 0)
    assert found.rates_at(-1) == (1, 0)
    assert found.threshold_at(0.4) == np.inf
    assert found.threshold_at(0.5) == pytest.approx(0.6)


def test_the_interval_covers_the_rate_of_the_population() -> None:
    """About four of five 80 % intervals of 30 classes contain the score of many other classes."""
    truth = metrics.verification(*clusters(300, 6, seed=99)).eer
    inside = [
        interval.low <= truth <= interval.high
        for seed in range(20)
        for interval in [metrics.verification(*clusters(30, 6, seed=seed)).interval(lambda curve: curve.eer, 0.8)]
    ]
    assert 12 <= sum(inside) <= 19


def test_two_classes_give_no_interval() -> None:
    assert metrics.verification(*clusters(2, 6)).interval(lambda curve: curve.eer) is None
    assert metrics.verification(*clusters(3, 6)).interval(lambda curve: curve.eer) is not None


@pytest.mark.parametrize(
    ("labels", "embeddings", "says"),
    [
        ([0, 0, 0], np.eye(3), "two classes"),
        ([0, 1, 2], np.eye(3), "must repeat"),
        ([0, 0, 1], np.diag([1.0, 0, 1]), "row 1"),
    ],
)
def test_sets_without_pairs_are_refused(labels: list[int], embeddings: Floats, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        metrics.verification(embeddings, labels)


def test_rates_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="fmr"):
        metrics.verification(*clusters(4, 4)).threshold_at(1.5)
