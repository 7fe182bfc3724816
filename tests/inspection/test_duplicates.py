"""Pairs and suspects by definition, with planted duplicates and wrong labels."""

import numpy as np
import pytest

from dmlcore.inspection import duplicates, neighbours
from tests.inspection.test_neighbours import write_embeddings


@pytest.mark.parametrize("gallery", [False, True])
@pytest.mark.parametrize("quantile", [0.0, 0.2, 0.5])
def test_pairs_are_all_that_lie_within_the_cutoff(tmp_path, gallery, quantile):
    found = neighbours.read(write_embeddings(tmp_path / "a.npz", classes=25, n=120, gallery=gallery))
    pairs = duplicates.across_classes(found, quantile)
    assert pairs.complete
    x = found.embeddings.astype(float)
    searched = found.is_gallery if gallery else np.ones(len(x), bool)
    expected = [
        (np.linalg.norm(x[i] - x[j]), i, j)
        for i in range(len(x))
        for j in range(i + 1, len(x))
        if found.labels[i] != found.labels[j] and (searched[i] or searched[j])
    ]
    expected = sorted((d, i, j) for d, i, j in expected if d <= pairs.cutoff)
    assert len(expected) > 50 * (quantile == 0.5)
    assert list(zip(pairs.first, pairs.second, strict=True)) == [(i, j) for _, i, j in expected]
    np.testing.assert_allclose(pairs.distances, [d for d, *_ in expected], atol=1e-12)


def test_lists_that_end_within_the_cutoff_are_not_called_complete(tmp_path):
    x = np.zeros((60, 2), np.float32)  # all at one point: each list of 24 lacks 35 others
    np.savez(tmp_path / "a.npz", embeddings=x, labels=np.arange(60) % 3, indices=np.arange(60))
    assert not duplicates.across_classes(neighbours.read(tmp_path / "a.npz")).complete


def test_a_wrong_label_in_the_midst_of_another_class_is_suspected(tmp_path):
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), 30)
    x = (np.eye(4)[labels] * 9 + random.normal(size=(120, 4))).astype(np.float32)
    labels[5], labels[70] = 2, 1  # wrong label
    np.savez(tmp_path / "a.npz", embeddings=x, labels=labels, indices=np.arange(120))
    found = duplicates.find_suspects(neighbours.read(tmp_path / "a.npz"))
    assert sorted(zip(found.rows, found.label, strict=True)) == [(5, 0), (70, 2)]
    assert (found.votes == 8).all()


def test_votes_are_those_of_the_definition(tmp_path):
    found = neighbours.read(write_embeddings(tmp_path / "a.npz", classes=6, n=120))
    some = duplicates.find_suspects(found, asked=5, share=0.6)
    assert len(some.rows) > 3
    assert (np.diff(some.votes) <= 0).all()
    for row in range(120):
        labels = found.labels[found.neighbours[row, :5]]
        values, counts = np.unique(labels, return_counts=True)
        wanted = found.labels[row] not in values and counts.max() >= 3 and found.positives.nearest[row] >= 0
        assert wanted == (row in some.rows)
        if wanted:
            at = np.flatnonzero(some.rows == row)[0]
            assert (some.label[at], some.votes[at]) == (values[counts.argmax()], counts.max())


def test_senseless_requests_are_named(tmp_path):
    found = neighbours.read(write_embeddings(tmp_path / "a.npz"))
    with pytest.raises(ValueError, match="quantile"):
        duplicates.across_classes(found, 1.5)
    with pytest.raises(ValueError, match="asked"):
        duplicates.find_suspects(found, 0)
    with pytest.raises(ValueError, match="share"):
        duplicates.find_suspects(found, 8, 0.0)
