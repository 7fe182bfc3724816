"""Retrieval among given candidates: manual example, plain loops, and plain retrieval if no item is missing."""

import itertools
import math

import numpy as np
import pytest

from dmlcore.metrics import nearest, rerank, retrieval


def test_a_case_by_hand():
    """Three candidates each: the new order brings the match of the first query from the third place to the first."""
    gallery = np.array([[0.0], [1.0], [2.0], [3.0]], np.float32)
    scores = rerank(
        np.array([[2.2], [0.9]], np.float32),
        np.array([7, 8]),
        np.array([[0, 1, 2], [3, 0, 1]]),
        (1, 2, 3, 4),
        gallery=gallery,
        gallery_labels=np.array([1, 1, 7, 8]),
    )
    assert scores.recall_at == {1: 0.5, 2: 0.5, 3: 1.0}
    assert scores.before_at == {1: 0.5, 2: 0.5, 3: 1.0}
    assert scores.chance_at == pytest.approx({1: 1 / 3, 2: 2 / 3, 3: 1.0})
    assert (scores.reach, scores.queries) == (1.0, 2)


def test_all_others_as_candidates_are_plain_retrieval():
    random = np.random.default_rng(0)
    points, labels = random.normal(size=(40, 3)).astype(np.float32), random.integers(0, 9, 40)
    labels[:2] = [50, 51]  # alone in their class, so they are not queries
    everyone = nearest(random.normal(size=(40, 3)).astype(np.float32), k=39)[1]
    scores, plain = rerank(points, labels, everyone, (1, 4, 100)), retrieval(points, labels, ks=(1, 4))
    assert scores.recall_at == pytest.approx(plain.recall_at)
    assert (scores.queries, scores.reach) == (plain.queries, 1.0)
    assert scores.before_at != scores.recall_at


def test_some_candidates_against_plain_loops():
    random = np.random.default_rng(1)
    points, labels = random.normal(size=(30, 2)).astype(np.float32), random.integers(0, 8, 30)
    listed = nearest(points[:, ::-1] + random.normal(size=(30, 2)), k=5)[1]
    found = {name: np.zeros(6) for name in ("recall", "before", "chance")}
    asked = [i for i in range(30) if (labels == labels[i]).sum() > 1]
    for i in asked:
        ordered = sorted(listed[i], key=lambda j: math.dist(points[i], points[j]))
        orders = [[labels[j] == labels[i] for j in order] for order in itertools.permutations(listed[i])]
        for k in range(1, 6):
            found["recall"][k] += any(labels[j] == labels[i] for j in ordered[:k]) / len(asked)
            found["before"][k] += any(labels[j] == labels[i] for j in listed[i][:k]) / len(asked)
            found["chance"][k] += np.mean([any(order[:k]) for order in orders]) / len(asked)
    scores = rerank(points, labels, listed, range(1, 6))
    for name, values in (("recall", scores.recall_at), ("before", scores.before_at), ("chance", scores.chance_at)):
        assert [values[k] for k in range(1, 6)] == pytest.approx(found[name][1:])
    assert scores.reach == pytest.approx(scores.recall_at[5])


@pytest.mark.parametrize(
    ("labels", "ks", "message"), [([0, 1, 2], (1,), "no query has a match"), ([0, 0, 1], (3,), "only 2 candidates")]
)
def test_what_cannot_be_scored_says_why(labels, ks, message):
    points = np.arange(3, dtype=np.float32)[:, None]
    with pytest.raises(ValueError, match=message):
        rerank(points, np.array(labels), np.array([[1, 2], [0, 2], [1, 0]]), ks)
