"""Confusions of classes compared with plain counting, and an order that reveals hidden blocks."""

import numpy as np
import pytest

from dmlcore.inspection import confusions
from dmlcore.metrics import nearest, retrieval
from tests.members import in_one_case


def scene(n=60, classes=5, seed=0):
    """Return embeddings and labels (not starting at 0) of overlapping classes; the last class has one sample."""
    random = np.random.default_rng(seed)
    labels = np.append(random.integers(classes, size=n - 1) * 3 + 2, 99)
    return (random.normal(size=(n, 4)) + labels[:, None] % 2).astype(np.float32), labels


def counted(labels, lists):
    """Return {(i, j): n} by definition from {query row: retrieved rows}."""
    found = {}
    for query, rows in lists.items():
        for row in rows:
            key = int(labels[query]), int(labels[row])
            found[key] = found.get(key, 0) + 1
    return found


def as_dict(found):
    table = found.counts.tocoo()
    return {
        (int(found.classes[i]), int(found.classes[j])): int(n)
        for i, j, n in zip(table.row, table.col, table.data, strict=True)
    }


@pytest.mark.parametrize("k", [1, 3, 7])
def test_k_neighbours_are_counted_by_class(k):
    x, labels = scene()
    _, rows = nearest(x, k=8)
    queries = np.arange(len(x)) % 4 > 0
    found = confusions.of_neighbours(labels, rows, queries, k)
    assert as_dict(found) == counted(labels, {q: rows[q, :k] for q in np.flatnonzero(queries)})
    assert found.queries.sum() == queries.sum()
    assert found.matrix().sum(1)[found.queries > 0] == pytest.approx(1)
    wrong = labels[rows[queries, :k]] != labels[queries, None]
    assert found.wrong == pytest.approx(wrong.mean())


@in_one_case(known=[False, True], split=[False, True])
def test_as_many_neighbours_as_the_class_has_others(known, split):
    x, labels = scene()
    searched = np.arange(len(x)) % 3 == 0 if split else np.zeros(len(x), bool)
    lists, hits = {}, []
    for q in np.flatnonzero(~searched):
        pool = np.flatnonzero(searched) if split else np.delete(np.arange(len(x)), q)
        order = pool[np.lexsort((pool, np.linalg.norm(x[pool].astype(float) - x[q], axis=1)))]
        lists[q] = order[: (labels[pool] == labels[q]).sum()]
    rows = np.zeros((len(x), 30), np.int64)
    for q, found in lists.items():
        rows[q, : len(found)] = found
    found = confusions.of_class_size(x, labels, searched, rows if known else None)
    assert as_dict(found) == counted(labels, lists)
    assert found.queries.sum() == sum(len(found) > 0 for found in lists.values())
    if not split:
        hits = retrieval(x, labels).per_query_r_precision
        for place, label in enumerate(found.classes):
            if found.queries[place]:
                assert found.matrix()[place, place] == pytest.approx(np.nanmean(hits[labels == label]))


def test_pairs_are_the_largest_mean_shares():
    x, labels = scene()
    _, rows = nearest(x, k=6)
    found = confusions.of_neighbours(labels, rows, labels != labels[0], 6)  # one class has no queries
    shares, asked = found.matrix(), (found.queries > 0).astype(int)
    plain = {
        (i, j): (shares[i, j] + shares[j, i]) / (asked[i] + asked[j])
        for i in range(len(shares))
        for j in range(i + 1, len(shares))
        if shares[i, j] + shares[j, i] > 0
    }
    best = confusions.pairs(found, 4)
    chosen = [plain.pop((i, j)) for i, j in zip(best.first, best.second, strict=True)]
    assert chosen == pytest.approx(sorted(chosen, reverse=True))
    assert max(plain.values()) <= min(chosen) + 1e-12, "ties may be broken either way"
    assert best.there == pytest.approx([shares[i, j] for i, j in zip(best.first, best.second, strict=True)])
    assert best.back == pytest.approx([shares[j, i] for i, j in zip(best.first, best.second, strict=True)])
    assert best.mutual == pytest.approx(chosen)


def test_no_confusion_has_no_pairs_and_keeps_the_order():
    labels = np.repeat([4, 7], 3)
    rows = np.array([[1, 2], [0, 2], [0, 1], [4, 5], [3, 5], [3, 4]])
    found = confusions.of_neighbours(labels, rows, np.ones(6, bool), 2)
    assert len(confusions.pairs(found).first) == 0
    assert found.wrong == 0
    assert confusions.order_classes(found.matrix()).tolist() == [0, 1]


def test_the_order_puts_hidden_blocks_together():
    random = np.random.default_rng(0)
    block = random.permutation(np.repeat(np.arange(8), 5))
    shares = 0.2 * (block[:, None] == block) + 0.01 * random.random((40, 40))
    found = confusions.order_classes(shares)
    assert sorted(found) == list(range(40))
    assert np.count_nonzero(np.diff(block[found])) == 7, "every block is contiguous"


def test_thousands_of_classes_stay_sparse_and_give_the_worst():
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(4000), 3)
    rows = random.integers(len(labels), size=(len(labels), 4))
    twins = np.flatnonzero(np.isin(labels, [17, 3000]))
    for row in twins:
        rows[row] = twins[labels[twins] != labels[row]][0]
    found = confusions.of_neighbours(labels, rows, np.ones(len(labels), bool), 4)
    assert found.counts.nnz <= rows.size
    assert {17, 3000} <= set(confusions.most_confused(found, 10).tolist())
    assert len(confusions.most_confused(found, 10)) == 10
    close = confusions.select_around(found, 17, 10)
    assert {17, 3000} <= set(close.tolist())
    assert len(close) <= 10
    assert found.place(4000) is None
    assert found.place(17) == 17


def test_what_does_not_fit_is_named():
    with pytest.raises(ValueError, match="do not fit together"):
        confusions.of_neighbours([1, 2], np.zeros((3, 1), int), [True, True], 1)
    with pytest.raises(ValueError, match=r"k must be in 1\.\.1"):
        confusions.of_neighbours([1, 2], [[1], [0]], [True, True], 2)
