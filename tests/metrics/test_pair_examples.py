"""Counts and examples of pairs agree with a table of all pairs, whatever the size of the chunks."""

from __future__ import annotations

import numpy as np
import pytest

from dmlcore.metrics import pair_counts, pair_examples, verification
from dmlcore.metrics.pair_examples import pair_examples as examples

KEEP = 3


def table(embeddings, labels):
    """Return first row, second row and similarity of all pairs of the same and of different classes."""
    unit = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    first, second = np.triu_indices(len(labels), 1)
    values, same = (unit @ unit.T)[first, second], labels[first] == labels[second]
    return [(first[kind], second[kind], values[kind]) for kind in (same, ~same)]


@pytest.fixture
def drawn():
    random = np.random.default_rng(3)
    labels = random.integers(0, 7, 90)
    return random.normal(size=(90, 4)) + 1.5 * np.eye(7, 4)[labels], labels


@pytest.fixture(params=[(2**23, 2**20), (700, 50)])
def sizes(request, monkeypatch):
    monkeypatch.setattr(pair_counts, "ELEMENTS", request.param[0])
    monkeypatch.setattr(pair_examples, "CHUNK", request.param[1])


@pytest.mark.usefixtures("sizes")
def test_counts_and_examples_are_those_of_all_pairs(drawn):
    thresholds = np.linspace(-0.9, 0.95, 12)
    for found, (first, second, values) in zip(examples(*drawn, thresholds, keep=KEEP), table(*drawn), strict=True):
        bins = np.searchsorted(thresholds, values, side="right")
        assert found.counts.tolist() == np.bincount(bins, minlength=13).tolist()
        assert found.accepted().tolist() == [(values >= t).sum() for t in thresholds]
        known = {frozenset(pair): value for *pair, value in zip(first, second, values, strict=True)}
        kept = [known[frozenset(pair)] for pair in zip(found.first, found.second, strict=True)]
        assert np.allclose(kept, found.similarities)
        assert len({frozenset(pair) for pair in zip(found.first, found.second, strict=True)}) == len(kept)
        for k, t in enumerate(thresholds):
            below, above = np.sort(values[values < t]), np.sort(values[values >= t])
            for positions, wanted in (
                (found.just_below(k), below[::-1]),
                (found.just_above(k), above),
                (found.lowest(k), below),
                (found.highest(k), above[::-1]),
            ):
                assert np.allclose(found.similarities[positions], wanted[:KEEP])


def test_counts_are_those_of_a_verification_ties_included():
    random = np.random.default_rng(0)
    embeddings, labels = random.integers(3, 8, (60, 3)), random.integers(0, 4, 60)
    curve = verification(embeddings, labels)
    thresholds = curve.thresholds[:0:-1]
    same, different = examples(embeddings, labels, thresholds)
    assert same.accepted()[::-1].tolist() == curve.accepted_same[1:].tolist()
    assert different.accepted()[::-1].tolist() == curve.accepted_different[1:].tolist()


def test_errors_name_the_argument(drawn):
    with pytest.raises(ValueError, match="thresholds must be strictly ascending"):
        examples(*drawn, [0.5, 0.5])
    with pytest.raises(ValueError, match="keep must be at least 1, got 0"):
        examples(*drawn, [0.5], keep=0)
