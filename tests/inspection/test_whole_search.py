"""Approximate search of all queries: its errors are measured, marked and stored; exact search equals `read`."""

import numpy as np
import pytest

from dmlcore.inspection import neighbour_lists, neighbours, whole_search
from dmlcore.inspection.approximation import Approximation
from dmlcore.inspection.whole_search import WholeSearch
from dmlcore.metrics.approximate import TITLES
from dmlcore.storage import arrays
from tests.inspection.test_neighbours import write_embeddings
from tests.members import in_one_case


def part(path, gallery):
    table = arrays.read(path, arrays.EMBEDDINGS, remedy="")
    marked = table.get("is_gallery", np.zeros(len(table["labels"]), bool))
    return table["embeddings"], table["labels"], marked


@pytest.mark.parametrize("gallery", [False, True])
def test_the_exact_way_is_what_a_page_would_have_computed(tmp_path, gallery):
    path = write_embeddings(tmp_path / "a.npz", gallery=gallery, classes=25, n=200)
    whole = neighbours.read(path)
    lists, approximation = whole_search.search_all(*part(path, gallery), WholeSearch("exact"))
    assert approximation is None
    np.testing.assert_array_equal(lists["neighbours"], whole.neighbours)
    np.testing.assert_array_equal(lists["rank"], whole.positives.rank)
    np.testing.assert_allclose(lists["average_precision"], whole.average_precision, atol=1e-12)


@in_one_case(kind=[kind for kind in TITLES if kind != "exact"])
def test_an_index_says_what_it_missed(kind):
    random = np.random.default_rng(3)
    labels = np.repeat(np.arange(80), 50)
    x = random.normal(size=(80, 16))[labels] + 1.5 * random.normal(size=(4000, 16))
    x, alone = x.astype(np.float32), np.zeros(4000, bool)
    told = []
    lists, known = whole_search.search_all(x, labels, alone, WholeSearch(kind), lambda *said: told.append(said))
    truth = neighbour_lists.search_rows(
        x, labels, alone, np.arange(0, 4000, 10), neighbour_lists.exact_search(x, alone), deep=False
    )
    some = {name: values[::10] for name, values in lists.items()}
    shares = [len(np.intersect1d(a, b)) / 24 for a, b in zip(some["neighbours"], truth["neighbours"], strict=True)]
    assert known.listed.share == pytest.approx(np.mean(shares), abs=0.04)
    assert known.first.least_whole < known.first.whole <= 1
    gain = truth["average_precision"].mean() - some["average_precision"].mean()
    assert abs(gain - known.precision) < 3 * known.precision_off + 0.01
    exact = np.linalg.norm(x[::10, None].astype(float) - x[some["neighbours"]], axis=2)
    np.testing.assert_allclose(some["distances"], exact, rtol=1e-6)
    assert [share for _, share, _ in told] == sorted(share for _, share, _ in told)
    assert told[-1][1] == 1
    assert Approximation.from_json(known.to_json()) == known


def test_lists_of_an_index_are_marked_and_void_for_other_embeddings(tmp_path):
    path = write_embeddings(tmp_path / "a.npz", classes=25, n=200)
    lists, known = whole_search.search_all(*part(path, False), WholeSearch("hnsw"))
    neighbours.write(path, lists | {"facts": np.array(known.to_json())})
    marked = neighbours.read(path)
    assert marked.approximation == known
    assert not marked.is_sample
    neighbours.write(path, lists | {"facts": np.array('{"kind": "magic"}')})
    assert neighbours.read(path).approximation is None, "an unreadable list must be recomputed exactly"
    rank = marked.positives.rank
    late, early = int(np.argmax(rank)), int(np.flatnonzero(rank == 2)[0])
    assert rank[late] == 25, "only entries of the list are read"
    assert (marked.place(early), marked.place(late)) == ("rank ≈ 2", "beyond rank ≈ 24")
    assert neighbours.read(write_embeddings(path, classes=25, n=200, seed=1)).approximation is None


def test_what_each_way_needs_is_foreseen():
    few, many = (whole_search.forecast(n, n, 16) for n in (10**5, 10**6))
    assert [cost.kind for cost in many] == list(TITLES)
    assert all(a.seconds < b.seconds and a.bytes < b.bytes for a, b in zip(few, many, strict=True))
    exact, hnsw = many[0], many[2]
    assert exact.seconds > hnsw.seconds
    assert exact.bytes < hnsw.bytes


@pytest.mark.parametrize(
    ("text", "name"), [('{"kind": "pickle"}', "kind"), ('{"seed": -1}', "seed"), ('{"no": 1}', "no")]
)
def test_a_choice_that_is_none_is_refused(text, name):
    with pytest.raises((ValueError, TypeError), match=name):
        WholeSearch.from_json(text)
