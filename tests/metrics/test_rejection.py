"""Rejection of unknown queries: scores by their definitions, and refusals."""

import numpy as np
import pytest

from dmlcore import metrics

GALLERY, LABELS = [[1.0, 0.0], [0.0, 1.0]], [0, 1]
# similarities 0.98 (right class), 0.9 (unknown), 0.8 (wrong class: it is 1), 0.7 (unknown)
QUERIES = [[0.98, np.sqrt(1 - 0.98**2)], [0.9, -np.sqrt(1 - 0.9**2)], [0.8, 0.6], [0.7, -np.sqrt(0.51)]]


def test_scores_by_hand() -> None:
    found = metrics.rejection(GALLERY, LABELS, QUERIES, [0, 5, 1, 6])
    np.testing.assert_allclose(found.similarities, [0.98, 0.9, 0.8, 0.7])
    assert found.auroc == 0.75  # of four pairs of a known and an unknown query, one is in the wrong order
    assert found.oscr == 0.5  # the one of the right class is accepted before all unknown ones
    assert found.fpr_at_95_tpr == 0.5
    assert list(found.predicted) == [0, 0, 0, 0]
    assert list(found.known) == [True, False, True, False]


def test_the_kinds_of_scores() -> None:
    gallery, labels = [[1.0, 0.0], [0.6, 0.8], [-1.0, 0.0]], [0, 0, 1]
    queries, wanted = [[1.0, 0.0], [0.0, -1.0]], [0, 9]
    second = metrics.rejection(gallery, labels, queries, wanted, score="k-th neighbour", k=2)
    np.testing.assert_allclose(second.similarities, [0.6, 0.0], atol=1e-12)
    mean = metrics.rejection(gallery, labels, queries, wanted, score="class mean")
    np.testing.assert_allclose(mean.similarities, [1.6 / np.hypot(1.6, 0.8), 0.0], atol=1e-12)
    assert mean.predicted[0] == 0


def test_queries_of_equal_similarity_are_accepted_together() -> None:
    found = metrics.rejection(GALLERY, LABELS, [[1.0, 0.0], [1.0, 0.0]], [0, 5])
    assert (found.auroc, found.oscr, found.fpr_at_95_tpr) == (0.5, 0.5, 1)


@pytest.mark.parametrize(
    ("wanted", "options", "says"),
    [
        ([0, 1, 0, 1], {}, "of an unknown class"),
        ([7, 8, 7, 8], {}, "of a known class"),
        ([0, 5, 1, 6], {"k": 3, "score": "k-th neighbour"}, "1..2"),
        ([0, 5, 1, 6], {"score": "distance"}, "score must be one of"),
    ],
)
def test_refusals(wanted: list[int], options: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        metrics.rejection(GALLERY, LABELS, QUERIES, wanted, **options)
